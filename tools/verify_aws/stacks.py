"""CloudFormation's state of the two stacks, and resources that outlived an earlier run's stacks."""

import time
from collections.abc import Iterator
from typing import Any

from botocore.exceptions import ClientError

from slipway.access import Access
from slipway.config.environments import Environment

# Between two looks at what takes minutes.
POLL_SECONDS = 5.0
# A change set that was never executed: nothing is in progress.
_NOTHING_BEGUN = "REVIEW_IN_PROGRESS"
_NO_BUCKET = ("404", "NoSuchBucket")
_NO_ENCRYPTION = "ServerSideEncryptionConfigurationNotFoundError"


def pauses() -> Iterator[float]:
    """Yields the seconds before each further look: fewer at first, for what is there soon."""
    share = 0.1
    while True:
        yield POLL_SECONDS * share
        share = min(2 * share, 1.0)


def stack_status(access: Access, name: str) -> str | None:
    """Returns a stack's status; None if there is no such stack."""
    try:
        found = access.client("cloudformation").describe_stacks(StackName=name)["Stacks"]
    except ClientError as error:
        # CloudFormation has no error code of its own for a stack that does not exist.
        if "does not exist" in error.response["Error"].get("Message", ""):
            return None
        raise
    status: str = found[0]["StackStatus"]
    return status


def await_stack(access: Access, name: str, *, until: float) -> str | None:
    """Waits until a stack has no operation in progress.

    Args:
        access: clients of the stack's account and region.
        name: StackName.
        until: time of the monotonic clock at which waiting ends.

    Returns:
        Its status, which is still in progress if the time was too short; None if the stack is gone.
    """
    waits = pauses()
    while True:
        status = stack_status(access, name)
        settled = status is None or status == _NOTHING_BEGUN or not status.endswith("_IN_PROGRESS")
        if settled or time.monotonic() > until:
            return status
        time.sleep(next(waits))


def bucket_exists(access: Access, name: str) -> bool:
    """Returns whether the account has a bucket."""
    try:
        access.client("s3").head_bucket(Bucket=name)
    except ClientError as error:
        if error.response["Error"]["Code"] in _NO_BUCKET:
            return False
        raise
    return True


def artifact_key_arn(access: Access, environment: Environment) -> str | None:
    """Returns the key that encrypts an artifact bucket; None if there is none."""
    try:
        found = access.client("s3").get_bucket_encryption(Bucket=environment.artifact_bucket)
    except ClientError as error:
        if error.response["Error"]["Code"] in (*_NO_BUCKET, _NO_ENCRYPTION):
            return None
        raise
    rules: list[dict[str, Any]] = found["ServerSideEncryptionConfiguration"]["Rules"]
    keys = [rule["ApplyServerSideEncryptionByDefault"].get("KMSMasterKeyID") for rule in rules]
    return next((key for key in keys if key is not None), None)


def key_state(access: Access, arn: str) -> str | None:
    """Returns the state of a KMS key, for example `PendingDeletion`; None if the key is gone."""
    try:
        found = access.client("kms").describe_key(KeyId=arn)
    except ClientError as error:
        if error.response["Error"]["Code"] == "NotFoundException":
            return None
        raise
    state: str = found["KeyMetadata"]["KeyState"]
    return state
