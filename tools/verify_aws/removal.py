"""Destroys both stacks, and lists what is left, with the commands that remove it."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from slipway.operations.leftovers import find_leftovers
from tools.verify_aws.commands import CommandError, Deployment
from tools.verify_aws.cost import REMOVAL_MINUTES
from tools.verify_aws.project import ENVIRONMENT, MODEL
from tools.verify_aws.stacks import (
    artifact_key_arn,
    await_stack,
    bucket_exists,
    key_state,
    stack_status,
)

_ATTEMPTS = 2
# The state of a key that is not billed any more and deletes itself.
_ENDING = "PendingDeletion"
# Key and id of each version of each object. Slipway's keys have no spaces.
_VERSIONS = "[Versions,DeleteMarkers][][].[Key,VersionId]"


@dataclass(frozen=True)
class Remainder:
    """A resource that a run leaves in the account.

    Args:
        kind: kind of the resource, for people.
        name: its name or ARN.
        commands: commands that remove it, in order; empty if nothing needs removal.
        is_meant: whether a run leaves it on purpose.
        note: a remark for people.
    """

    kind: str
    name: str
    commands: tuple[str, ...] = ()
    is_meant: bool = True
    note: str = ""


class RemovalError(Exception):
    """A stack still exists; the message says why and what to do."""


def destroy_all(deployment: Deployment, stage: Callable[..., object]) -> None:
    """Destroys the endpoint's stack and then the foundation's, each as a stage of its own.

    Args:
        deployment: what was deployed.
        stage: `stage(NAME, FUNCTION)` runs a stage and raises only on an interrupt.
    """
    target = deployment.target
    for construct_id, stack in ((MODEL, target.endpoint), ("foundation", target.foundation)):
        stage(f"destroy {construct_id}", partial(_destroy, deployment, construct_id, stack))


def _destroy(deployment: Deployment, construct_id: str, stack: str) -> str:
    """Destroys a stack, whatever its state; returns a sentence about what was done.

    CloudFormation refuses to delete a stack that is being updated, and SageMaker an endpoint that
    is being created, so operations in progress are awaited first.

    Raises:
        RemovalError: the stack still exists.
    """
    access = deployment.access
    until = time.monotonic() + REMOVAL_MINUTES * 60
    reason = ""
    for _ in range(_ATTEMPTS):
        if await_stack(access, stack, until=until) is None:
            return f"{stack} is gone" if reason else f"{stack} was not there"
        # An existing assembly needs no second synthesis.
        source = (
            ("--app", "cdk.out", "--exclusively")
            if (deployment.folder / "cdk.out" / "manifest.json").is_file()
            else ("-c", f"env={ENVIRONMENT}", "-c", f"models={MODEL}", "--exclusively")
        )
        seconds = max(until - time.monotonic(), 1.0)
        try:
            deployment.run("cdk", "destroy", construct_id, "--force", *source, seconds=seconds)
        except CommandError as error:
            reason = str(error)
            continue
        status = stack_status(access, stack)
        if status is None:
            return f"{stack} is destroyed"
        reason = f"{stack} is {status}"
    raise RemovalError(
        f"{stack} could not be destroyed, and an endpoint in it is billed until it is.\n{reason}\n"
        "    Run `make verify-aws` again: it begins with what is left."
    )


def find_remains(deployment: Deployment, key_arn: str | None) -> Iterator[Remainder]:
    """Yields the remainders of a run, in the order in which they are best removed.

    Args:
        deployment: what was deployed.
        key_arn: the foundation's key, if the run has seen it.
    """
    target, access = deployment.target, deployment.access
    environment = target.environment
    again = ("make verify-aws",)
    for stack in (target.endpoint, target.foundation):
        status = stack_status(access, stack)
        if status is not None:
            yield Remainder("stack", stack, again, is_meant=False, note=f"It is {status}.")
    for item in find_leftovers(MODEL, environment, access):
        if item.kind != "stack":  # listed above
            yield Remainder(item.kind, item.name, again, is_meant=False)
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
