"""Buckets and bucket policies."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from botocore.exceptions import ClientError

from slipway.embedded_aws.cloudformation.resources.base import (
    Physical,
    Properties,
    ResourceContext,
    ResourceFailedError,
    ResourceHandler,
    allowed_members,
    changed,
    document_text,
    selected,
)


def _unchanged(_: str, value: Any) -> Any:
    return value


def _canned_acl(_: str, value: Any) -> str:
    """Returns `log-delivery-write` for LogDeliveryWrite."""
    return re.sub(r"(?<!^)(?=[A-Z])", "-", value or "Private").lower()


def _encryption(_: str, value: Any) -> dict[str, Any]:
    allowed_members(value, ("ServerSideEncryptionConfiguration",), "BucketEncryption")
    path = "BucketEncryption.ServerSideEncryptionConfiguration"
    rules = []
    for rule in value["ServerSideEncryptionConfiguration"]:
        allowed_members(rule, ("BucketKeyEnabled", "ServerSideEncryptionByDefault"), path)
        default = dict(rule.get("ServerSideEncryptionByDefault", {}))
        allowed_members(default, ("KMSMasterKeyID", "SSEAlgorithm"), path)
        key = selected(rule, "BucketKeyEnabled")
        rules.append({"ApplyServerSideEncryptionByDefault": default, **key})
    return {"Rules": rules}


def _logging(bucket: str, value: Any) -> dict[str, Any]:
    if not value:
        return {}
    allowed_members(value, ("DestinationBucketName", "LogFilePrefix"), "LoggingConfiguration")
    return {
        "LoggingEnabled": {
            "TargetBucket": value.get("DestinationBucketName", bucket),
            "TargetPrefix": value.get("LogFilePrefix", ""),
        }
    }


def _lifecycle(_: str, value: Any) -> dict[str, Any]:
    allowed_members(value, ("Rules",), "LifecycleConfiguration")
    return {"Rules": [_lifecycle_rule(rule) for rule in value["Rules"]]}


def _lifecycle_rule(rule: Mapping[str, Any]) -> dict[str, Any]:
    same = ("AbortIncompleteMultipartUpload", "NoncurrentVersionExpiration", "Status")
    path = "LifecycleConfiguration.Rules"
    allowed_members(rule, (*same, "ExpirationInDays", "Id", "Prefix"), path)
    expiring = selected(rule, Days="ExpirationInDays")
    return {
        "Filter": {"Prefix": rule.get("Prefix", "")},
        **({"Expiration": expiring} if expiring else {}),
        **selected(rule, *same, ID="Id"),
    }


# Property -> the operation that sets it, the operation's member, and the function that returns the
# member for a bucket's name and the property's value.
_SETTINGS: Mapping[str, tuple[str, str, Callable[[str, Any], Any]]] = {
    "AccessControl": ("PutBucketAcl", "ACL", _canned_acl),
    "VersioningConfiguration": (
        "PutBucketVersioning",
        "VersioningConfiguration",
        # Versioning, once enabled, can only be suspended.
        lambda _, value: value or {"Status": "Suspended"},
    ),
    "BucketEncryption": ("PutBucketEncryption", "ServerSideEncryptionConfiguration", _encryption),
    "PublicAccessBlockConfiguration": (
        "PutPublicAccessBlock",
        "PublicAccessBlockConfiguration",
        _unchanged,
    ),
    "OwnershipControls": ("PutBucketOwnershipControls", "OwnershipControls", _unchanged),
    "LifecycleConfiguration": (
        "PutBucketLifecycleConfiguration",
        "LifecycleConfiguration",
        _lifecycle,
    ),
    "LoggingConfiguration": ("PutBucketLogging", "BucketLoggingStatus", _logging),
    "Tags": ("PutBucketTagging", "Tagging", lambda _, value: {"TagSet": value}),
}
# Property -> the operation that removes it.
_REMOVALS = {
    "BucketEncryption": "DeleteBucketEncryption",
    "PublicAccessBlockConfiguration": "DeletePublicAccessBlock",
    "OwnershipControls": "DeleteBucketOwnershipControls",
    "LifecycleConfiguration": "DeleteBucketLifecycle",
    "Tags": "DeleteBucketTagging",
}


class BucketHandler(ResourceHandler):
    type_name = "AWS::S3::Bucket"
    service = "s3"
    # It refuses a bucket with objects or versions.
    deletion = ("DeleteBucket", "Bucket")
    gone = ("NoSuchBucket",)
    properties = frozenset({*_SETTINGS, "BucketName"})
    name_property = "BucketName"
    attributes = frozenset({"Arn", "DomainName", "DualStackDomainName", "RegionalDomainName"})

    def create(self, context: ResourceContext, properties: Properties) -> Physical:
        name = properties.get("BucketName") or context.physical_name(maximum=63, lower=True)
        if _exists(context.api, name):
            # In us-east-1 the API reports success for a bucket that the caller already owns.
            raise ResourceFailedError(f"{name} already exists")
        request: dict[str, Any] = {"Bucket": name}
        if context.region != "us-east-1":
            request["CreateBucketConfiguration"] = {"LocationConstraint": context.region}
        ownership = properties.get("OwnershipControls", {}).get("Rules", [])
        if ownership:
            request["ObjectOwnership"] = ownership[0]["ObjectOwnership"]
        context.call("CreateBucket", request)
        context.initiated(name)
        self._configure(context, name, {}, properties)
        return self._physical(context, name)

    def update(self, context: ResourceContext, old: Properties, new: Properties) -> None:
        self._configure(context, context.physical_id, old, new)

    def existing(self, context: ResourceContext, properties: Properties) -> Physical | None:
        name = properties["BucketName"]
        return self._physical(context, name) if _exists(context.api, name) else None

    def _configure(
        self, context: ResourceContext, bucket: str, old: Properties, new: Properties
    ) -> None:
        """Sets the changed configurations, and removes those that the template no longer has."""
        for name, (operation, member, api_form) in _SETTINGS.items():
            if changed(old, new, name):
                value = new.get(name)
                if not value and name in _REMOVALS:
                    context.call(_REMOVALS[name], {"Bucket": bucket})
                else:
                    context.call(operation, {"Bucket": bucket, member: api_form(bucket, value)})

    def _physical(self, context: ResourceContext, name: str) -> Physical:
        attributes = {
            "Arn": f"arn:aws:s3:::{name}",
            "DomainName": f"{name}.s3.amazonaws.com",
            "DualStackDomainName": f"{name}.s3.dualstack.{context.region}.amazonaws.com",
            "RegionalDomainName": f"{name}.s3.{context.region}.amazonaws.com",
        }
        return Physical(name, attributes)


def _exists(client: Any, bucket: str) -> bool:
    try:
        client.head_bucket(Bucket=bucket)
    except ClientError as error:
        if error.response["Error"]["Code"] not in ("404", "NoSuchBucket"):
            raise
        return False
    return True


class BucketPolicyHandler(ResourceHandler):
    type_name = "AWS::S3::BucketPolicy"
    service = "s3"
    deletion = ("DeleteBucketPolicy", "Bucket")
    gone = ("NoSuchBucket", "NoSuchBucketPolicy")
    properties = frozenset({"Bucket", "PolicyDocument"})

    def create(self, context: ResourceContext, properties: Properties) -> Physical:
        """Calls PutBucketPolicy; a bucket has only one."""
        bucket = properties["Bucket"]
        try:
            context.api.get_bucket_policy(Bucket=bucket)
        except ClientError as error:
            if error.response["Error"]["Code"] != "NoSuchBucketPolicy":
                raise
        else:
            raise ResourceFailedError(f"The bucket policy already exists on bucket {bucket}.")
        self.update(context, {}, properties)
        return Physical(bucket)

    def update(self, context: ResourceContext, old: Properties, new: Properties) -> None:
        text = document_text(new["PolicyDocument"])
        context.api.put_bucket_policy(Bucket=new["Bucket"], Policy=text)
