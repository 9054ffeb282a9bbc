"""S3 with the permissions of an execution role: its policies are checked before every call.

SageMaker brings model data to an instance, and input to a training job, as the execution role. A
role that may not read an artifact must therefore fail here as it fails in AWS. The words of the
error are from IAM's guide, for a denial without an explicit deny, read 2026-11-23:
https://docs.aws.amazon.com/IAM/latest/UserGuide/troubleshoot_access-denied.html
"""

from collections.abc import Iterator
from typing import Any

from botocore.exceptions import ClientError
from moto.kms.models import kms_backends

from slipway.embedded_aws.iam.permissions import Context, may
from slipway.embedded_aws.identity import ACCOUNT_ID

_CONSOLE_FOLDER = "/"


def denial(role_arn: str, action: str, resource: str) -> str:
    """Returns IAM's message of a denial without an explicit deny; it leaves out `*`."""
    name = role_arn.rpartition("/")[2]
    about = "" if resource == "*" else f' on resource: "{resource}"'
    return (
        f"User: arn:aws:sts::{ACCOUNT_ID}:assumed-role/{name}/SageMaker is not authorized to "
        f"perform: {action}{about} because no identity-based policy allows the {action} action"
    )


class RoleAccess:
    """One role's access to objects; a model without a role is allowed everything.

    A method raises ClientError if the role may not do this, or there is no such bucket or object.
    """

    def __init__(self, s3: Any, role_arn: str | None) -> None:
        self._s3 = s3
        self._role_arn = role_arn

    def keys(self, bucket: str, prefix: str) -> Iterator[str]:
        self._require(
            "s3:ListBucket", f"arn:aws:s3:::{bucket}", "ListObjectsV2", {"s3:prefix": prefix}
        )
        for page in self._s3.get_paginator("list_objects_v2").paginate(
            Bucket=bucket, Prefix=prefix
        ):
            for item in page.get("Contents", []):
                # A console's "folder" is an empty object whose key ends with a slash.
                if not item["Key"].endswith(_CONSOLE_FOLDER):
                    yield item["Key"]

    def read(self, bucket: str, key: str) -> Any:
        """Opens an object's content."""
        self.require_readable(bucket, key)
        found = self._s3.get_object(Bucket=bucket, Key=key)
        if (key_id := found.get("SSEKMSKeyId")) is not None:
            try:
                self._require_key("kms:Decrypt", key_id, "GetObject")
            except ClientError:
                found["Body"].close()
                raise
        return found["Body"]

    def require_readable(self, bucket: str, key: str) -> None:
        self._require("s3:GetObject", f"arn:aws:s3:::{bucket}/{key}", "GetObject")

    def require_writable(
        self, bucket: str, key: str, key_id: str | None, *, in_parts: bool = False
    ) -> None:
        """Checks that the role may write an object, encrypted with a KMS key (id or ARN).

        Of an object that is uploaded in parts, S3 decrypts the parts that it has:
        https://docs.aws.amazon.com/AmazonS3/latest/userguide/mpuAndPermissions.html
        """
        self._require("s3:PutObject", f"arn:aws:s3:::{bucket}/{key}", "PutObject")
        if key_id is not None:
            self._require_key("kms:GenerateDataKey", key_id, "PutObject")
            if in_parts:
                self._require_key("kms:Decrypt", key_id, "CompleteMultipartUpload")

    def _require_key(self, action: str, key_id: str, operation: str) -> None:
        region = self._s3.meta.region_name
        name = key_id.rpartition("/")[2]
        arn = (
            key_id if key_id.startswith("arn:") else f"arn:aws:kms:{region}:{ACCOUNT_ID}:key/{name}"
        )
        # A policy may name a key by its aliases.
        key = kms_backends[ACCOUNT_ID][region].keys.get(name)
        aliases = [] if key is None else list(key.aliases)
        self._require(action, arn, operation, {"kms:resourcealiases": aliases})

    def _require(
        self, action: str, resource: str, operation: str, context: Context | None = None
    ) -> None:
        role = self._role_arn
        if role is None or may(role, action, resource, context):
            return
        message = denial(role, action, resource)
        raise ClientError({"Error": {"Code": "AccessDenied", "Message": message}}, operation)
