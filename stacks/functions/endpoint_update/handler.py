"""The Lambda function that lets an autoscaled endpoint change.

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

from functools import partial

from ..answers import Answer, Client, Event, Outcome, Wait, respond, run
from .endpoint import Endpoint
from .log import settle_log
from .removal import await_release
from .stack import Stack

_LONGEST_PHYSICAL_ID = 1024


def handle(event: Event, client: Client, answer: Answer, wait: Wait) -> None:
    """Handles a request of CloudFormation and answers it."""
    own_id = f"{event['ResourceProperties']['EndpointName']}-{event['LogicalResourceId']}-"
    respond(event, answer, own_id, lambda: _settle(event, own_id, client, wait))


def _settle(event: Event, own_id: str, client: Client, wait: Wait) -> Outcome:
    properties = event["ResourceProperties"]
    name, step = properties["EndpointName"], (properties["Step"], event["RequestType"])
    endpoint = Endpoint(name, event["StackId"], client, wait)
    done, made_id = list[str](), None
    if step == ("Undo", "Create"):
        made_id = own_id + endpoint.remembered(_LONGEST_PHYSICAL_ID - len(own_id))
    elif step == ("Undo", "Delete") and event["PhysicalResourceId"].startswith(own_id):
        done = endpoint.restore(event["PhysicalResourceId"].removeprefix(own_id))
    elif step == ("Before", "Delete"):
        done = settle_log(client("logs"), name, Stack(event["StackId"], client).status)
        done += await_release(properties["Held"], client, wait) if "Held" in properties else []
    elif "Alarms" in step and "Delete" not in step:
        done = endpoint.point_alarms()
    elif "Undo" not in step and "Delete" not in step:
        tags = properties.get("TargetTags", {})
        done = endpoint.settle(properties["Variants"], tags, is_first="Create" in step)
    return Outcome("; ".join(done) or "Nothing to do.", made_id)


handler = partial(run, handle)
