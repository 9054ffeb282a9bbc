"""Buckets and bucket policies."""

# ruff: noqa: ARG002  # every handler has the same methods, and few need all their arguments

from __future__ import annotations

import json
from typing import Any

from botocore.exceptions import ClientError

from embedded_aws.cloudformation.resources.api_calls import (
    allowed_members,
    call,
    ignoring,
    tag_list,
)
from embedded_aws.cloudformation.resources.base import (
    Attributes,
    Physical,
    Properties,
    ResourceContext,
    ResourceFailedError,
    ResourceHandler,
    TagStyle,
    changed,
)
from embedded_aws.cloudformation.resources.s3_lifecycle import lifecycle_rules

_CANNED_ACLS = {
    "AuthenticatedRead": "authenticated-read",
    "BucketOwnerFullControl": "bucket-owner-full-control",
    "BucketOwnerRead": "bucket-owner-read",
    "LogDeliveryWrite": "log-delivery-write",
    "Private": "private",
    "PublicRead": "public-read",
    "PublicReadWrite": "public-read-write",
}


class BucketHandler(ResourceHandler):
    """AWS::S3::Bucket."""

    type_name = "AWS::S3::Bucket"
    properties = frozenset(
        {
            "AccessControl",
            "BucketEncryption",
            "BucketName",
            "LifecycleConfiguration",
            "LoggingConfiguration",
            "OwnershipControls",
            "PublicAccessBlockConfiguration",
            "Tags",
            "VersioningConfiguration",
        }
    )
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
        self._configure(context, name, {}, properties)
        return Physical(name, self._attributes(context, name))

    def update(
        self, context: ResourceContext, physical_id: str, old: Properties, new: Properties
    ) -> Attributes:
        """Sets the changed configurations, and removes those that the template no longer has."""
        self._configure(context, physical_id, old, new)
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

    def _configure(
        self, context: ResourceContext, name: str, old: Properties, new: Properties
    ) -> None:
        for prop, configure in (
            ("AccessControl", self._set_acl),
            ("VersioningConfiguration", self._set_versioning),
            ("BucketEncryption", self._set_encryption),
            ("PublicAccessBlockConfiguration", self._set_public_access),
            ("OwnershipControls", self._set_ownership),
            ("LifecycleConfiguration", self._set_lifecycle),
            ("LoggingConfiguration", self._set_logging),
            ("Tags", self._set_tags),
        ):
            if changed(old, new, prop):
                configure(context.client("s3"), name, new.get(prop))

    def _set_acl(self, client: Any, name: str, value: Any) -> None:
        canned = _CANNED_ACLS.get(value or "Private")
        if canned is None:
            raise ResourceFailedError(f"AccessControl {value} is not one of {[*_CANNED_ACLS]}")
        client.put_bucket_acl(Bucket=name, ACL=canned)

    def _set_versioning(self, client: Any, name: str, value: Any) -> None:
        # Versioning, once enabled, can only be suspended.
        configuration = value or {"Status": "Suspended"}
        call(
            client,
            "PutBucketVersioning",
            {"Bucket": name, "VersioningConfiguration": configuration},
        )

    def _set_encryption(self, client: Any, name: str, value: Any) -> None:
        if not value:
            client.delete_bucket_encryption(Bucket=name)
            return
        allowed_members(value, ("ServerSideEncryptionConfiguration",), "BucketEncryption")
        rules = []
        for rule in value["ServerSideEncryptionConfiguration"]:
            path = "BucketEncryption.ServerSideEncryptionConfiguration"
            allowed_members(rule, ("BucketKeyEnabled", "ServerSideEncryptionByDefault"), path)
            default = dict(rule.get("ServerSideEncryptionByDefault", {}))
            allowed_members(default, ("KMSMasterKeyID", "SSEAlgorithm"), path)
            rules.append(
                {
                    "ApplyServerSideEncryptionByDefault": default,
                    **{k: rule[k] for k in ("BucketKeyEnabled",) if k in rule},
                }
            )
        configuration = {"Bucket": name, "ServerSideEncryptionConfiguration": {"Rules": rules}}
        call(client, "PutBucketEncryption", configuration)

    def _set_public_access(self, client: Any, name: str, value: Any) -> None:
        if not value:
            client.delete_public_access_block(Bucket=name)
            return
        call(
            client,
            "PutPublicAccessBlock",
            {"Bucket": name, "PublicAccessBlockConfiguration": value},
        )

    def _set_ownership(self, client: Any, name: str, value: Any) -> None:
        if not value:
            client.delete_bucket_ownership_controls(Bucket=name)
            return
        call(client, "PutBucketOwnershipControls", {"Bucket": name, "OwnershipControls": value})

    def _set_lifecycle(self, client: Any, name: str, value: Any) -> None:
        if not value:
            client.delete_bucket_lifecycle(Bucket=name)
            return
        call(
            client,
            "PutBucketLifecycleConfiguration",
            {"Bucket": name, "LifecycleConfiguration": {"Rules": lifecycle_rules(value)}},
        )

    def _set_logging(self, client: Any, name: str, value: Any) -> None:
        status: dict[str, Any] = {}
        if value:
            allowed_members(
                value, ("DestinationBucketName", "LogFilePrefix"), "LoggingConfiguration"
            )
            status["LoggingEnabled"] = {
                "TargetBucket": value.get("DestinationBucketName", name),
                "TargetPrefix": value.get("LogFilePrefix", ""),
            }
        client.put_bucket_logging(Bucket=name, BucketLoggingStatus=status)

    def _set_tags(self, client: Any, name: str, value: Any) -> None:
        tags = tag_list({"Tags": value or []})
        if tags:
            call(client, "PutBucketTagging", {"Bucket": name, "Tagging": {"TagSet": tags}})
        else:
            client.delete_bucket_tagging(Bucket=name)

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
        context.initiated(bucket)
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
        document = properties["PolicyDocument"]
        text = document if isinstance(document, str) else json.dumps(document)
        context.client("s3").put_bucket_policy(Bucket=properties["Bucket"], Policy=text)
