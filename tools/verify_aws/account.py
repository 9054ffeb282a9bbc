"""What the account tells of stacks, buckets and keys, once, or again and again during a command."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from typing import Any, Generic, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from slipway.access import Access, existing
from slipway.config.environments import Environment
from tools.verify_aws.commands import CheckError

# Between two looks at what takes minutes.
POLL_SECONDS = 5.0
# A change set that was never executed: nothing is in progress.
_NOTHING_BEGUN = "REVIEW_IN_PROGRESS"
_NO_BUCKET = ("404", "NoSuchBucket")
_NO_ENCRYPTION = "ServerSideEncryptionConfigurationNotFoundError"

Awaited = TypeVar("Awaited")
Seen = TypeVar("Seen", bound=Hashable)


def awaited(look: Callable[[], Awaited | None], *, until: float, missing: str) -> Awaited:
    """Waits until something is seen, and returns it; raises `CheckError` when the time is over."""
    waits = _pauses()
    while (found := look()) is None:
        if time.monotonic() > until:
            raise CheckError(missing)
        time.sleep(next(waits))
    return found


def _pauses() -> Iterator[float]:
    """Yields the seconds before each further look: fewer at first, for what is there soon."""
    share = 0.1
    while True:
        yield POLL_SECONDS * share
        share = min(2 * share, 1.0)


def stack_status(access: Access, name: str) -> str | None:
    """Returns a stack's status; None if there is no such stack."""
    describe = access.client("cloudformation").describe_stacks
    # CloudFormation has no error code of its own for a stack that does not exist.
    found = existing(describe, "ValidationError", StackName=name)
    return str(found["Stacks"][0]["StackStatus"]) if found else None


def await_stack(access: Access, name: str, *, until: float) -> str | None:
    """Waits until a stack has no operation in progress, or the monotonic clock shows `until`.

    Returns its status, which is still in progress if the time was too short; None if the stack is
    gone.
    """
    waits = _pauses()
    while (status := stack_status(access, name)) not in (None, _NOTHING_BEGUN):
        if not status.endswith("_IN_PROGRESS") or time.monotonic() > until:
            break
        time.sleep(next(waits))
    return status


def bucket_exists(access: Access, name: str) -> bool:
    return existing(access.client("s3").head_bucket, *_NO_BUCKET, Bucket=name) is not None


def artifact_key_arn(access: Access, environment: Environment) -> str | None:
    """Returns the key that encrypts an artifact bucket; None if there is none."""
    describe, bucket = access.client("s3").get_bucket_encryption, environment.artifact_bucket
    found = existing(describe, *_NO_BUCKET, _NO_ENCRYPTION, Bucket=bucket)
    rules: list[dict[str, Any]] = (
        found["ServerSideEncryptionConfiguration"]["Rules"] if found else []
    )
    keys = (rule["ApplyServerSideEncryptionByDefault"].get("KMSMasterKeyID") for rule in rules)
    return next(filter(None, keys), None)


def key_state(access: Access, arn: str) -> str | None:
    """Returns the state of a KMS key, for example `PendingDeletion`; None if the key is gone."""
    found = existing(access.client("kms").describe_key, "NotFoundException", KeyId=arn)
    return str(found["KeyMetadata"]["KeyState"]) if found else None


class Watch(Generic[Seen]):
    """Looks at something again and again, in a thread of its own, and once more at its end.

    The clients of `look` are made before, since boto3 makes none in threads.
    """

    def __init__(self, look: Callable[[], Seen], pause_seconds: float = 1.0) -> None:
        self._look = look
        self._pause_seconds = pause_seconds
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)
        self._begun = time.monotonic()
        self.seen: list[tuple[float, Seen]] = []
        """Each change of what is seen, with its seconds since the beginning."""
        self.counts = Counter[Seen]()

    def __enter__(self) -> "Watch[Seen]":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        is_last = False
        while True:
            try:
                value = self._look()
            except (BotoCoreError, ClientError):
                # Throttled, or not there for a moment: the next look sees it.
                pass
            else:
                self.counts[value] += 1
                if not self.seen or self.seen[-1][1] != value:
                    self.seen.append((time.monotonic() - self._begun, value))
            if is_last:
                return
            is_last = self._ended.wait(self._pause_seconds)
