"""Destroys both stacks, and lists what is left, with the commands that remove it."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from botocore.exceptions import BotoCoreError, ClientError

from slipway.access import Access, paged
from slipway.operations.leftovers import find_leftovers
from tools.verify_aws.account import (
    artifact_key_arn,
    await_stack,
    bucket_exists,
    key_state,
    stack_status,
)
from tools.verify_aws.checks import REMOVAL_MINUTES
from tools.verify_aws.commands import CommandError, Session
from tools.verify_aws.project import ENVIRONMENT, MODEL, QUEUE_MODEL, Target, assembly

_ATTEMPTS = 2
# The state of a key that is not billed any more and deletes itself.
_ENDING = "PendingDeletion"
# Key and id of each version of each object. Slipway's keys have no spaces.
_VERSIONS = "[Versions,DeleteMarkers][][].[Key,VersionId]"


@dataclass(frozen=True)
class Remainder:
    """A resource that a run leaves in the account, with the commands that remove it, in order.

    `is_meant` says whether a run leaves it on purpose.
    """

    kind: str
    name: str
    commands: tuple[str, ...] = ()
    is_meant: bool = True
    note: str = ""


def destroy_all(session: Session, stage: Callable[..., object]) -> None:
    """Destroys the endpoints' stacks and then the foundation's, each as a stage of its own.

    The second endpoint and its bucket are looked for in every run, since an earlier one with
    `--deep` may have left them. A stage raises only on an interrupt.
    """
    target, access = session.target, session.access
    stacks = [(MODEL, target.endpoint), ("foundation", target.foundation)]
    if _may_exist(lambda: stack_status(access, target.queue_endpoint) is not None):
        stacks.insert(0, (QUEUE_MODEL, target.queue_endpoint))
    for construct_id, stack in stacks:
        stage(f"destroy {construct_id}", partial(destroy_stack, session, construct_id, stack))
    if _may_exist(lambda: bucket_exists(access, target.queue_bucket)):
        stage("remove the requests", partial(_remove_queue_bucket, access, target))


def _may_exist(look: Callable[[], bool]) -> bool:
    try:
        return look()
    except (BotoCoreError, ClientError):
        # The stage then fails with the reason, and the next one goes on.
        return True


def make_queue_bucket(access: Access, target: Target) -> None:
    """Makes the bucket of the second endpoint's requests and answers, unless it is there."""
    if bucket_exists(access, target.queue_bucket):
        return
    place = (
        {}  # S3 refuses to be told its own default.
        if target.region == "us-east-1"
        else {"CreateBucketConfiguration": {"LocationConstraint": target.region}}
    )
    access.client("s3").create_bucket(Bucket=target.queue_bucket, **place)


def _remove_queue_bucket(access: Access, target: Target) -> str:
    s3, bucket = access.client("s3"), target.queue_bucket
    for item in paged(s3, "list_objects_v2", "Contents", Bucket=bucket):
        s3.delete_object(Bucket=bucket, Key=item["Key"])
    s3.delete_bucket(Bucket=bucket)
    return f"{bucket} is removed"


def destroy_stack(session: Session, construct_id: str, stack: str) -> str:
    """Destroys a stack, whatever its state; raises `CommandError` if it still exists.

    CloudFormation refuses to delete a stack that is being updated, and SageMaker an endpoint that
    is being created, so operations in progress are awaited first.
    """
    access = session.access
    until = time.monotonic() + REMOVAL_MINUTES * 60
    # The foundation is in the app of the first model.
    model = QUEUE_MODEL if construct_id == QUEUE_MODEL else MODEL
    reason, folder = "", assembly(model)
    for _ in range(_ATTEMPTS):
        if await_stack(access, stack, until=until) is None:
            return f"{stack} is gone" if reason else f"{stack} was not there"
        # An existing assembly needs no second synthesis.
        source = (
            ("--app", folder, "--exclusively")
            if (session.folder / folder / "manifest.json").is_file()
            else ("-c", f"env={ENVIRONMENT}", "-c", f"models={model}", "--exclusively")
        )
        seconds = max(until - time.monotonic(), 1.0)
        try:
            session.run("cdk", "destroy", construct_id, "--force", *source, seconds=seconds)
        except CommandError as error:
            reason = str(error)
            continue
        status = stack_status(access, stack)
        if status is None:
            return f"{stack} is destroyed"
        reason = f"{stack} is {status}"
    raise CommandError(
        f"{stack} could not be destroyed, and an endpoint in it is billed until it is.\n{reason}\n"
        "    Run `make verify-aws` again: it begins with what is left."
    )


def find_remains(session: Session, key_arn: str | None) -> Iterator[Remainder]:
    """Yields the remainders of a run, in the order in which they are best removed."""
    target, access = session.target, session.access
    environment = target.environment
    again = ("make verify-aws",)
    for stack in (target.queue_endpoint, target.endpoint, target.foundation):
        status = stack_status(access, stack)
        if status is not None:
            yield Remainder("stack", stack, again, is_meant=False, note=f"It is {status}.")
    for model in (QUEUE_MODEL, MODEL):
        for item in find_leftovers(model, environment, access):
            if item.kind != "stack":  # listed above
                yield Remainder(item.kind, item.name, again, is_meant=False)
    if bucket_exists(access, target.queue_bucket):
        yield Remainder("bucket", target.queue_bucket, again, is_meant=False)
    # Before the bucket is removed, since only its settings name the key.
    key_arn = artifact_key_arn(access, environment) or key_arn
    region = f"--region {target.region}"
    bucket, logs = environment.artifact_bucket, environment.access_log_bucket
    for name, note in (
        (bucket, "It has the model's files, a few kB. A foundation keeps its bucket on purpose."),
        (logs, "S3 writes access logs to it for some hours more, each a few kB."),
    ):
        if bucket_exists(access, name):
            yield Remainder("bucket", name, _bucket_commands(name, region), note=note)
    if key_arn is not None and key_state(access, key_arn) not in (None, _ENDING):
        yield Remainder(
            "KMS key",
            key_arn,
            (
                f"aws kms schedule-key-deletion --key-id {key_arn.rpartition('/')[2]} "
                f"--pending-window-in-days 7 {region}",
            ),
            note="It costs 1 USD a month until then. Remove it after the bucket it encrypts.",
        )
    yield Remainder(
        "CDK assets",
        f"cdk-hnb659fds-assets-{target.account}-{target.region}",
        note="Templates and packages of functions, below 1 MB, which the CDK CLI uploaded to the "
        "bootstrap's own bucket.",
    )


def _bucket_commands(bucket: str, region: str) -> tuple[str, str]:
    """Returns the command that empties a bucket with versions, and the command that removes it."""
    return (
        f"aws s3api list-object-versions --bucket {bucket} {region} --output text "
        f"--query '{_VERSIONS}' | while read -r key version; do aws s3api delete-object "
        f'--bucket {bucket} {region} --key "$key" --version-id "$version"; done',
        f"aws s3 rb s3://{bucket} {region}",
    )
