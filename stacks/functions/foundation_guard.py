"""The Lambda function that refuses to deploy a foundation over one that it would damage.

Every resource of the foundation depends on the custom resource that calls it. When it refuses,
CloudFormation has therefore changed only this function itself.

- A new foundation is refused if the artifact bucket of an earlier foundation exists and is
  encrypted with another key. The artifacts in it would be unreadable.
- An update is refused if another project deployed the foundation, or a newer version of it.
  CloudFormation passes the properties of both.

A rollback is never refused, although it goes back to an older version.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from .answers import Answer, Client, Event, Outcome, RefusedError, Wait, respond, run

# The bucket does not exist yet, or was created without a key: CloudFormation refuses the latter.
_NO_KEY = ("NoSuchBucket", "ServerSideEncryptionConfigurationNotFoundError")


def handle(event: Event, client: Client, answer: Answer, wait: Wait) -> None:
    """Handles a request of CloudFormation and answers it."""

    def check() -> Outcome:
        _check(event, client)
        return Outcome("Nothing stands in the way.")

    respond(event, answer, "foundation-guard", check, wait)


def _check(event: Event, client: Client) -> None:
    """Raises RefusedError if the deployment must not go on."""
    if event["RequestType"] == "Delete":
        return
    (stack,) = client("cloudformation").describe_stacks(StackName=event["StackId"])["Stacks"]
    if "ROLLBACK" in stack["StackStatus"]:
        return
    wanted = event["ResourceProperties"]
    if event["RequestType"] == "Update":
        _compare(event["OldResourceProperties"], wanted)
    elif stack["StackStatus"].startswith("CREATE"):
        _find_key(wanted, client("s3"))
    # Otherwise an update adds this function to an older foundation, which has the bucket already.


def _compare(deployed: Mapping[str, str], wanted: Mapping[str, str]) -> None:
    owner, project = deployed["Project"], wanted["Project"]
    if owner and owner != project:
        raise RefusedError(
            f"This foundation belongs to the project {owner}, and {project or 'no project'} is "
            "deployed over it. Nothing was changed. Give this repository a `project` of its own in "
            "environments.yaml."
        )
    if int(wanted["Version"]) < int(deployed["Version"]):
        raise RefusedError(
            f"Version {deployed['Version']} of the foundation is deployed, and this is version "
            f"{wanted['Version']}. Nothing was changed. Bring the working copy up to date, or "
            "deploy a model alone with `cdk deploy NAME --exclusively`."
        )


def _find_key(wanted: Mapping[str, str], s3: Any) -> None:
    bucket = wanted["ArtifactBucket"]
    try:
        found = s3.get_bucket_encryption(Bucket=bucket)["ServerSideEncryptionConfiguration"]
    except Exception as error:
        if getattr(error, "response", {}).get("Error", {}).get("Code") in _NO_KEY:
            return
        raise
    for rule in found["Rules"]:
        key = rule["ApplyServerSideEncryptionByDefault"].get("KMSMasterKeyID")
        if key is not None and key != wanted["ArtifactKeyArn"]:
            raise RefusedError(
                f"The bucket {bucket} of an earlier foundation exists, and its artifacts are "
                f"encrypted with {key}. Nothing was changed. Add `artifact_key_arn: {key}` to the "
                "environment in environments.yaml, and deploy with `--import-existing-resources`."
            )


handler = partial(run, handle)
