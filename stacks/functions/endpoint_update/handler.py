"""The Lambda function that lets an autoscaled endpoint change.

SageMaker refuses to remove a variant that is a scalable target, or to change its instance types.
CloudFormation updates the endpoint before it deletes targets, and does not create again a target
that is unchanged in the template. Custom resources therefore surround the endpoint and call this
function. Their property Step says which of them calls.

- Undo is a new resource with each change of the variants. CloudFormation creates it first, and it
  stores the targets in its physical id. CloudFormation deletes it when the deployment is over.
  After a rollback, that is the last step of all, and missing targets are registered again.
- Before waits until the endpoint is at rest. It deregisters a target if its variant is removed,
  gets other instance types, or is not scaled any more. Application Auto Scaling deletes the
  target's policies and scheduled actions with it.
- After fails unless the endpoint serves the template's configuration. SageMaker can undo an update
  and report no failure. It then sets the variants' weights, which are no part of the configuration,
  because another configuration is another fleet. It then registers the targets again, as Undo
  remembers them.

The properties are names and weights. CloudFormation itself brings the template's limits, schedules
and policies to the targets, which depend on After. A policy has another name with other instance
types, so that CloudFormation makes it anew.

Targets that the stack does not own are left alone.
"""

from __future__ import annotations

from functools import partial

from ..answers import Answer, Client, Event, Outcome, Wait, respond, run
from .endpoint import Endpoint
from .log import settle_log
from .removal import await_release
from .stack import Stack, own_id

_LONGEST_PHYSICAL_ID = 1024


def handle(event: Event, client: Client, answer: Answer, wait: Wait) -> None:
    """Handles a request of CloudFormation and answers it."""
    own = own_id(event["ResourceProperties"]["EndpointName"], event["LogicalResourceId"])
    respond(event, answer, own, lambda: _settle(event, own, client, wait), wait)


def _settle(event: Event, own: str, client: Client, wait: Wait) -> Outcome:
    properties = event["ResourceProperties"]
    name, step = properties["EndpointName"], (properties["Step"], event["RequestType"])
    stack = Stack(event["StackId"], client)
    endpoint = Endpoint(name, stack, client, wait)
    done, made_id = list[str](), None
    if step == ("Undo", "Create"):
        made_id = own + endpoint.remembered(_LONGEST_PHYSICAL_ID - len(own))
    elif step == ("Undo", "Delete") and event["PhysicalResourceId"].startswith(own):
        done = endpoint.restore(event["PhysicalResourceId"].removeprefix(own))
    elif step == ("Before", "Delete"):
        done = settle_log(client("logs"), name, stack.status)
        if "Held" in properties and stack.is_deleted():
            done += await_release(properties["Held"], client, wait)
    elif "Before" in step:
        done = endpoint.make_way(properties["ConfigName"], properties["Scaled"])
    elif "After" in step and "Delete" not in step:
        done = endpoint.follow(
            properties["ConfigName"],
            properties["Scaled"],
            properties.get("Weights", {}),
            is_first="Create" in step,
        )
    return Outcome("; ".join(done) or "Nothing to do.", made_id)


handler = partial(run, handle)
