"""The Lambda function that stops the builds of a project before the project is deleted.

It runs alone: no import from here. CodeBuild lets a build go on when its project is deleted, and
the build would be billed until its time limit.
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
_IN_PROGRESS = "IN_PROGRESS"


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
    status, reason = "SUCCESS", "No build runs."
    try:
        if event["RequestType"] == "Delete":
            _stop_builds(event["ResourceProperties"]["ProjectName"], client("codebuild"))
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
            "PhysicalResourceId": event.get("PhysicalResourceId", "remote-publishing"),
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


def _stop_builds(project: str, codebuild: Any) -> None:
    """Stops every build of a project that runs or waits.

    The newest hundred are enough: builds end within the time limit, a day and a half at most.
    """
    identifiers = codebuild.list_builds_for_project(projectName=project)["ids"]
    if not identifiers:
        return
    for build in codebuild.batch_get_builds(ids=identifiers)["builds"]:
        if build["buildStatus"] == _IN_PROGRESS:
            codebuild.stop_build(id=build["id"])
