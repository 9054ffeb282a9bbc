"""The Lambda function between CloudFormation and CodeBuild. It runs alone: no import from here.

CloudFormation asks for an image (a custom resource), and the function starts a build, whose
variables hold the address of the answer. When the build is over, or a phase has ended it,
EventBridge calls the function, which answers. Only CloudFormation waits in between, for an hour at
most. If both events arrive, CloudFormation uses the first answer.

An image is never deleted: its tag stands for its content, and an endpoint may still start from it.
"""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any, Protocol

Event = Mapping[str, Any]
# Sends an answer to an address.
Answer = Callable[[str, dict[str, str]], None]

# A build that was started by hand has no such variable, and nothing waits for its answer.
_WAITING = "SLIPWAY_ANSWER_TO"
_PUT_TIMEOUT_SECONDS = 10
# Responses have 4096 bytes at most; the rest of a response is identifiers.
_LONGEST_REASON = 2000


class CodeBuild(Protocol):
    """The two methods of boto3's client that are used; the client itself has no types."""

    def start_build(self, **request: Any) -> dict[str, Any]:
        """Starts a build."""

    def batch_get_builds(self, *, ids: list[str]) -> dict[str, Any]:
        """Describes builds."""


def handler(event: Event, _context: object) -> None:
    """Handles a call of Lambda."""
    # Imported here, because only Lambda's own environment sets the client's region.
    import boto3

    handle(event, boto3.client("codebuild"), put)


def handle(event: Event, codebuild: CodeBuild, answer: Answer) -> None:
    """Handles a request of CloudFormation, or an event of EventBridge that a build is over.

    Args:
        event: the request or the event.
        codebuild: starts and describes builds.
        answer: sends the answer to the request's ResponseURL.
    """
    if "RequestType" in event:
        _requested(event, codebuild, answer)
    else:
        _over(event["detail"], codebuild, answer)


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


def _requested(event: Event, codebuild: CodeBuild, answer: Answer) -> None:
    deletes = event["RequestType"] == "Delete"
    properties = event["ResourceProperties"]
    waiting = {
        "ResponseURL": event["ResponseURL"],
        "StackId": event["StackId"],
        "RequestId": event["RequestId"],
        "LogicalResourceId": event["LogicalResourceId"],
        # Another tag is another resource: CloudFormation deletes the old one afterwards.
        "PhysicalResourceId": event["PhysicalResourceId"] if deletes else properties["ImageUri"],
    }
    if deletes:
        _answer(waiting, "SUCCESS", "Images stay in their repository.", answer)
        return
    variables = {
        "IMAGE_URI": properties["ImageUri"],
        "BASE_IMAGE": properties["BaseImage"],
        "TARGET": properties["Target"],
        _WAITING: json.dumps(waiting),
    }
    try:
        codebuild.start_build(
            projectName=properties["ProjectName"],
            # Lambda may deliver a request twice.
            idempotencyToken=event["RequestId"],
            environmentVariablesOverride=[
                {"name": name, "value": value, "type": "PLAINTEXT"}
                for name, value in variables.items()
            ],
        )
    # Any error is answered, because without an answer the stack would hang for an hour.
    except Exception as error:
        reason = f"The build of {properties['ImageUri']} did not start: {error}"
        _answer(waiting, "FAILED", reason, answer)


def _over(news: Mapping[str, str], codebuild: CodeBuild, answer: Answer) -> None:
    # The first is in a state change, the second in a phase change.
    status = news.get("build-status") or news["completed-phase-status"]
    identifier = news["build-id"].rpartition(":build/")[2]
    (build,) = codebuild.batch_get_builds(ids=[identifier])["builds"]
    variables = {
        item["name"]: item["value"] for item in build["environment"]["environmentVariables"]
    }
    if _WAITING not in variables:
        return
    log = build.get("logs", {}).get("deepLink", "none was written")
    reason = f"The build of {variables['IMAGE_URI']} ended as {status}. Its log: {log}"
    succeeded = "SUCCESS" if status == "SUCCEEDED" else "FAILED"
    _answer(json.loads(variables[_WAITING]), succeeded, reason, answer)


def _answer(waiting: Mapping[str, str], status: str, reason: str, answer: Answer) -> None:
    identifiers = {name: value for name, value in waiting.items() if name != "ResponseURL"}
    answer(
        waiting["ResponseURL"],
        {**identifiers, "Status": status, "Reason": reason[:_LONGEST_REASON]},
    )
