"""Buckets and bucket policies."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from botocore.exceptions import ClientError

from slipway.embedded_aws.cloudformation.resources.api_calls import (
    allowed_members,
    call,
    document_text,
    ignoring,
    selected,
)
from slipway.embedded_aws.cloudformation.resources.base import (
    Attributes,
    Physical,
    Properties,
    ResourceContext,
    ResourceFailedError,
    ResourceHandler,
    TagStyle,
    changed,
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
    """AWS::S3::Bucket."""

    type_name = "AWS::S3::Bucket"
    properties = frozenset({*_SETTINGS, "BucketName"})
    name_property = "BucketName"
    attributes = frozenset({"Arn", "DomainName", "DualStackDomainName", "RegionalDomainName"})
    tags = TagStyle.LIST

    def create(self, context: ResourceContext, properties: Properties) -> Physical:
        """Calls CreateBucket and sets every configuration."""
        client = context.client("s3")
        name = properties.get("BucketName") or context.physical_name(maximum=63, lower=True)
        if _exists(client, name):
            # In us-east-1 the API reports success for a bucket that the caller already owns.
            raise ResourceFailedError(f"{name} already exists")
        request: dict[str, Any] = {"Bucket": name}
        if context.region != "us-east-1":
            request["CreateBucketConfiguration"] = {"LocationConstraint": context.region}
        ownership = properties.get("OwnershipControls", {}).get("Rules", [])
        if ownership:
            request["ObjectOwnership"] = ownership[0]["ObjectOwnership"]
        call(client, "CreateBucket", request)
        context.initiated(name)
        self._configure(client, name, {}, properties)
        return Physical(name, self._attributes(context, name))

    def update(
        self, context: ResourceContext, physical_id: str, old: Properties, new: Properties
    ) -> Attributes:
        """Sets the changed configurations, and removes those that the template no longer has."""
        self._configure(context.client("s3"), physical_id, old, new)
        return self._attributes(context, physical_id)

    def delete(self, context: ResourceContext, physical_id: str, properties: Properties) -> None:
        """Calls DeleteBucket, which refuses a bucket with objects or versions."""
        with ignoring("NoSuchBucket"):
            context.client("s3").delete_bucket(Bucket=physical_id)

    def existing(self, context: ResourceContext, properties: Properties) -> Physical | None:
        """Returns the bucket of that name."""
        name = properties["BucketName"]
        if not _exists(context.client("s3"), name):
            return None
        return Physical(name, self._attributes(context, name))

    def _configure(self, client: Any, bucket: str, old: Properties, new: Properties) -> None:
        for name, (operation, member, api_form) in _SETTINGS.items():
            if changed(old, new, name):
                value = new.get(name)
                if not value and name in _REMOVALS:
                    call(client, _REMOVALS[name], {"Bucket": bucket})
                else:
                    call(client, operation, {"Bucket": bucket, member: api_form(bucket, value)})

    def _attributes(self, context: ResourceContext, name: str) -> Attributes:
        return {
            "Arn": f"arn:aws:s3:::{name}",
            "DomainName": f"{name}.s3.amazonaws.com",
            "DualStackDomainName": f"{name}.s3.dualstack.{context.region}.amazonaws.com",
            "RegionalDomainName": f"{name}.s3.{context.region}.amazonaws.com",
        }


def _exists(client: Any, bucket: str) -> bool:
    try:
        client.head_bucket(Bucket=bucket)
    except ClientError as error:
        if error.response["Error"]["Code"] not in ("404", "NoSuchBucket"):
            raise
        return False
    return True


class BucketPolicyHandler(ResourceHandler):
    """AWS::S3::BucketPolicy."""

    type_name = "AWS::S3::BucketPolicy"
    properties = frozenset({"Bucket", "PolicyDocument"})

    def create(self, context: ResourceContext, properties: Properties) -> Physical:
        """Calls PutBucketPolicy; a bucket has only one."""
        bucket = properties["Bucket"]
        try:
            context.client("s3").get_bucket_policy(Bucket=bucket)
        except ClientError as error:
            if error.response["Error"]["Code"] != "NoSuchBucketPolicy":
                raise
        else:
            raise ResourceFailedError(f"The bucket policy already exists on bucket {bucket}.")
        self._put(context, properties)
        return Physical(bucket, {})

    def update(
        self, context: ResourceContext, physical_id: str, old: Properties, new: Properties
    ) -> Attributes:
        """Puts the policy again."""
        self._put(context, new)
        return {}

    def delete(self, context: ResourceContext, physical_id: str, properties: Properties) -> None:
        """Calls DeleteBucketPolicy."""
        with ignoring("NoSuchBucket", "NoSuchBucketPolicy"):
            context.client("s3").delete_bucket_policy(Bucket=physical_id)

    def _put(self, context: ResourceContext, properties: Properties) -> None:
        text = document_text(properties["PolicyDocument"])
        context.client("s3").put_bucket_policy(Bucket=properties["Bucket"], Policy=text)
