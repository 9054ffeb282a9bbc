"""The Lambda function that refuses to deploy a foundation over one that it would damage.

It runs alone: no import from here. Every resource of the foundation depends on the custom resource
that calls it. When it refuses, CloudFormation has therefore changed only this function itself.

- A new foundation is refused if the artifact bucket of an earlier foundation exists and is
  encrypted with another key. The artifacts in it would be unreadable.
- An update is refused if another project deployed the foundation, or a newer version of it.
  CloudFormation passes the properties of both.

A rollback is never refused, although it goes back to an older version.
"""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any

Event = Mapping[str, Any]
# Sends an answer to an address.
Answer = Callable[[str, dict[str, str]], None]
# Returns boto3's client of a service.
Client = Callable[[str], Any]
# Waits for that many seconds; nothing here waits.
Wait = Callable[[float], None]

_PUT_TIMEOUT_SECONDS = 10
# Responses have 4096 bytes at most; the rest of a response is identifiers.
_LONGEST_REASON = 2000
# The bucket does not exist yet, or was created without a key: CloudFormation refuses the latter.
_NO_KEY = ("NoSuchBucket", "ServerSideEncryptionConfigurationNotFoundError")


class RefusedError(Exception):
    """The deployment would do damage; the message says what to do instead."""


def handler(event: Event, _context: object) -> None:
    """Handles a call of Lambda."""
    # Imported here, because only Lambda's own environment sets the client's region.
    import boto3

    client: Any = boto3.client  # its types list every service by name
    handle(event, client, put, _wait_for_nothing)


def handle(event: Event, client: Client, answer: Answer, _wait: Wait) -> None:
    """Handles a request of CloudFormation and answers it.

    Args:
        event: the request of the custom resource.
        client: returns boto3's client of a service.
        answer: sends the answer to the request's ResponseURL.
        _wait: not used; the embedded AWS passes it to every such function.
    """
    status, reason = "SUCCESS", "Nothing stands in the way."
    try:
        _check(event, client)
    # Any error is answered, because without an answer the stack would hang.
    except Exception as error:
        status, reason = "FAILED", str(error)
    print(json.dumps({"request": event["RequestType"], "status": status, "reason": reason}))
    answer(
        event["ResponseURL"],
        {
            "Status": status,
            "Reason": reason[:_LONGEST_REASON],
            "StackId": event["StackId"],
            "RequestId": event["RequestId"],
            "LogicalResourceId": event["LogicalResourceId"],
            # Always the same id, because CloudFormation would take another id for a replacement.
            "PhysicalResourceId": event.get("PhysicalResourceId", "foundation-guard"),
        },
    )


def put(url: str, content: dict[str, str]) -> None:
    """Sends an answer to the signed address that CloudFormation gave for it."""
    request = urllib.request.Request(  # noqa: S310  # CloudFormation's own address
        url,
        data=json.dumps(content).encode(),
        method="PUT",
        # The URL is signed for a request without a content type; urllib would add one.
        headers={"Content-Type": ""},
    )
    with urllib.request.urlopen(request, timeout=_PUT_TIMEOUT_SECONDS):  # noqa: S310  # as above
        pass


def _wait_for_nothing(_seconds: float) -> None:
    """Takes the place of a wait; it is never called."""


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
