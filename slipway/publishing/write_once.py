"""Writes that S3 refuses where an object lies.

S3 takes the condition with PutObject and CompleteMultipartUpload, and since 2025 with CopyObject:
https://www.amazonaws.cn/en/new/2025/amazon-s3-adds-conditional-write-functionality-to-copy-operations
"""

from typing import Any

from botocore.exceptions import ClientError

_MAKES_OBJECTS = ("CompleteMultipartUpload", "CopyObject", "PutObject")
# S3's answers to a conditional write: something lies there, or was written or deleted meanwhile
# (https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html).
_LIES_THERE = ("ConditionalRequestConflict", "PreconditionFailed")


def lies_there(error: ClientError) -> bool:
    """Returns whether S3 refused a write because of what lies there, or of another write."""
    return error.response["Error"]["Code"] in _LIES_THERE


def write_once(client: Any, prefix: str) -> None:
    """Makes a client's writes under a prefix conditional, also those of boto3's transfers.

    boto3's transfers take no such argument.
    """

    def condition(params: dict[str, Any], model: Any, **_: Any) -> dict[str, Any] | None:
        if model.name not in _MAKES_OBJECTS or not params["Key"].startswith(prefix):
            return None
        return params if "IfMatch" in params else {**params, "IfNoneMatch": "*"}

    client.meta.events.register(
        "provide-client-params.s3", condition, unique_id=f"write-once {prefix}"
    )
