"""The Lambda function between CloudFormation and CodeBuild.

CloudFormation asks for an image (a custom resource), and the function starts a build, whose
variables hold the address of the answer. When the build is over, or a phase has ended it,
EventBridge calls the function, which answers. Only CloudFormation waits in between, for an hour at
most. If both events arrive, CloudFormation uses the first answer.

An image is never deleted: its tag stands for its content, and an endpoint may still start from it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import Any

from .answers import Answer, Client, Event, Wait, run, send

# A build that was started by hand has no such variable, and nothing waits for its answer.
_WAITING = "SLIPWAY_ANSWER_TO"


def handle(event: Event, client: Client, answer: Answer, _wait: Wait) -> None:
    """Handles a request of CloudFormation, or an event of EventBridge that a build is over."""
    codebuild = client("codebuild")
    if "RequestType" in event:
        _requested(event, codebuild, answer)
    else:
        _over(event["detail"], codebuild, answer)


def _requested(event: Event, codebuild: Any, answer: Answer) -> None:
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
        _send(waiting, "SUCCESS", "Images stay in their repository.", answer)
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
        _send(waiting, "FAILED", reason, answer)


def _over(news: Mapping[str, str], codebuild: Any, answer: Answer) -> None:
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
    _send(json.loads(variables[_WAITING]), succeeded, reason, answer)


def _send(waiting: Mapping[str, str], status: str, reason: str, answer: Answer) -> None:
    send(waiting, waiting["PhysicalResourceId"], status, reason, answer)


handler = partial(run, handle)
