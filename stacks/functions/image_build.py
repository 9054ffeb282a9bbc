"""The Lambda function between CloudFormation and CodeBuild.

CloudFormation asks for an image (a custom resource), and the function starts a build. Then it calls
itself, looks at the build until that is over, and answers. A call that lasts too long calls the
function again. So the request is in Lambda's own queue alone. A user who knows its ResponseURL may
answer in the stack's name, and the variables of a build are open to every reader of the account.

An image is never deleted: its tag stands for its content, and an endpoint may still start from it.
"""

from __future__ import annotations

import json
from functools import partial

from .answers import Answer, Client, Event, Wait, run, send

_RUNNING = "IN_PROGRESS"
_LOOK_SECONDS = 15
# Twelve minutes and a half: Lambda ends a call after 15.
_LOOKS = 50


def handle(event: Event, client: Client, answer: Answer, wait: Wait) -> None:
    """Handles a request of CloudFormation, or this function's own call with the started build."""
    if event["RequestType"] == "Delete":
        reason = "Images stay in their repository."
        send(event, event["PhysicalResourceId"], "SUCCESS", reason, answer)
        return
    # Another tag is another resource: CloudFormation deletes the old one afterwards.
    uri = event["ResourceProperties"]["ImageUri"]
    build_id = event.get("BuildId")
    try:
        if build_id is None:
            build_id = _start(event, client)
        elif (end := _end(build_id, client, wait)) is not None:
            status, log = end
            reason = f"The build of {uri} ended as {status}. Its log: {log}"
            send(event, uri, "SUCCESS" if status == "SUCCEEDED" else "FAILED", reason, answer)
            return
    # Any error is answered, because without an answer the stack would hang for an hour.
    except Exception as error:
        done = "did not start" if build_id is None else "cannot be looked at"
        send(event, uri, "FAILED", f"The build of {uri} {done}: {error}", answer)
        return
    # Not answered if it fails, since Lambda tries the call again: a new right may not be known yet.
    client("lambda").invoke(
        FunctionName=event["ResourceProperties"]["ServiceToken"],
        InvocationType="Event",
        Payload=json.dumps({**event, "BuildId": build_id}),
    )


def _start(event: Event, client: Client) -> str:
    properties = event["ResourceProperties"]
    variables = {
        "IMAGE_URI": properties["ImageUri"],
        "BASE_IMAGE": properties["BaseImage"],
        "TARGET": properties["Target"],
    }
    started = client("codebuild").start_build(
        projectName=properties["ProjectName"],
        # Lambda may deliver a request twice.
        idempotencyToken=event["RequestId"],
        environmentVariablesOverride=[
            {"name": name, "value": value, "type": "PLAINTEXT"} for name, value in variables.items()
        ],
    )
    return str(started["build"]["id"])


def _end(build_id: str, client: Client, wait: Wait) -> tuple[str, str] | None:
    """Returns a build's status and the address of its log; None while it runs."""
    codebuild = client("codebuild")
    for _ in range(_LOOKS):
        (build,) = codebuild.batch_get_builds(ids=[build_id])["builds"]
        if build["buildStatus"] != _RUNNING:
            return build["buildStatus"], build.get("logs", {}).get("deepLink", "none was written")
        wait(_LOOK_SECONDS)
    return None


handler = partial(run, handle)
