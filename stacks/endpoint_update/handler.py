"""The Lambda function that lets an autoscaled endpoint change. Its package runs alone.

SageMaker refuses to remove a variant that is a scalable target, or to change its instance types.
CloudFormation updates the endpoint before it deletes targets, and does not create again a target
that is unchanged in the template. Custom resources therefore surround the endpoint and call this
function with the template's variants. Their property Step says which of them calls.

Before and After do the same, and may be called any number of times. They compare the stack's
scalable targets with the live endpoint:

- A registered target is deregistered if its variant is removed, gets other instance types, or is
  not scaled any more. Its scaling policies and scheduled actions are deleted with it.
- A wanted target that is not registered is registered, with its policies and scheduled actions, as
  soon as its variant runs as wanted.

A target that the stack has not created yet is left to CloudFormation, and so is a target that the
stack does not own.

Alarms comes after the alarms of step policies. A policy that is put again has another ARN, and
CloudFormation keeps the earlier one. The alarms then get the ARN of the live policy.

Undo is a new resource with each change of the variants. CloudFormation creates it first, and it
then stores the targets in its physical id. CloudFormation deletes it when the deployment is over.
After a rollback, that is the last step of all, and missing targets are registered again as they
were.
"""

from __future__ import annotations

import json
import time
import urllib.request
from typing import Any

from .endpoint import Endpoint
from .log import settle_log
from .stack import Stack
from .surroundings import Answer, Client, Event, Wait

_PUT_TIMEOUT_SECONDS = 10
_LONGEST_PHYSICAL_ID = 1024
# Responses have 4096 bytes at most; the rest of a response is identifiers.
_LONGEST_REASON = 2000


def handler(event: Event, _context: object) -> None:
    """Handles a call of Lambda."""
    # Imported here, because only Lambda's own environment sets the client's region.
    import boto3

    client: Any = boto3.client  # its types list every service by name
    handle(event, client, put, time.sleep)


def handle(event: Event, client: Client, answer: Answer, wait: Wait) -> None:
    """Handles a request of CloudFormation and answers it.

    Args:
        event: the request of a custom resource.
        client: returns boto3's client of a service.
        answer: sends the answer to the request's ResponseURL.
        wait: waits for that many seconds.
    """
    properties = event["ResourceProperties"]
    name = properties["EndpointName"]
    own_id = f"{name}-{event['LogicalResourceId']}-"
    # Always the same id, because CloudFormation would take another id for a replacement.
    physical_id = event.get("PhysicalResourceId", own_id)
    step = (properties["Step"], event["RequestType"])
    status, done = "SUCCESS", list[str]()
    try:
        endpoint = Endpoint(name, event["StackId"], client, wait)
        if step == ("Undo", "Create"):
            physical_id = own_id + endpoint.remembered(_LONGEST_PHYSICAL_ID - len(own_id))
        elif step == ("Undo", "Delete") and physical_id.startswith(own_id):
            done = endpoint.restore(physical_id.removeprefix(own_id))
        elif step == ("Before", "Delete"):
            done = settle_log(client("logs"), name, Stack(event["StackId"], client).status)
        elif "Alarms" in step and "Delete" not in step:
            done = endpoint.point_alarms()
        elif "Undo" not in step and "Delete" not in step:
            tags = properties.get("TargetTags", {})
            done = endpoint.settle(properties["Variants"], tags, is_first="Create" in step)
    # Any error is answered, because without an answer the stack would hang.
    except Exception as error:
        status, done = "FAILED", [str(error)]
    reason = "; ".join(done) or "Nothing to do."
    print(json.dumps({"step": step, "status": status, "done": reason}))
    answer(
        event["ResponseURL"],
        {
            "Status": status,
            "Reason": reason[:_LONGEST_REASON],
            "StackId": event["StackId"],
            "RequestId": event["RequestId"],
            "LogicalResourceId": event["LogicalResourceId"],
            "PhysicalResourceId": physical_id,
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
