"""The function around an endpoint's update, in a stack that has other resources as well.

The function of `endpoint_update` knows a stack of one endpoint: by the ids in it, and by the
stack's status. Here each endpoint has a construct of its own, whose path begins the logical ids.
This module shows that function only the resources of its endpoint, under the ids that it knows. If
an update of the stack removes the endpoint, the function sees the status of a deletion.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from .answers import Answer, Client, Event, Wait, run
from .endpoint_update.handler import handle as handle_endpoint

_CONSTRUCT = "EndpointUpdate"
# CloudFormation deletes what an update removed, or what a failed update had added, in the end.
_WHEN_REMOVED = {
    "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS": "DELETE_IN_PROGRESS",
    "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS": "ROLLBACK_IN_PROGRESS",
}


def handle(event: Event, client: Client, answer: Answer, wait: Wait) -> None:
    """Handles a request of CloudFormation and answers it."""

    def limited(service: str) -> Any:
        found = client(service)
        return _Stacks(found, event) if service == "cloudformation" else found

    handle_endpoint(event, limited, answer, wait)


class _Stacks:
    """CloudFormation, as far as an endpoint is concerned."""

    def __init__(self, client: Any, event: Event) -> None:
        self._client = client
        self._endpoint = event["ResourceProperties"]["EndpointName"]
        self._prefix = event["LogicalResourceId"].rpartition(_CONSTRUCT)[0]
        step = (event["ResourceProperties"]["Step"], event["RequestType"])
        self._is_removed = step == ("Before", "Delete")

    def describe_stacks(self, **named: Any) -> dict[str, Any]:
        answer: dict[str, Any] = self._client.describe_stacks(**named)
        for stack in answer["Stacks"] if self._is_removed else ():
            stack["StackStatus"] = _WHEN_REMOVED.get(stack["StackStatus"], stack["StackStatus"])
        return answer

    def list_stack_resources(self, **named: Any) -> dict[str, Any]:
        answer: dict[str, Any] = self._client.list_stack_resources(**named)
        own = []
        for item in answer["StackResourceSummaries"]:
            logical_id = item["LogicalResourceId"]
            if not logical_id.startswith(self._prefix):
                continue
            item["LogicalResourceId"] = shown = logical_id.removeprefix(self._prefix)
            begin = f"{self._endpoint}-{logical_id}-"
            if item.get("PhysicalResourceId", "").startswith(begin):
                memory = item["PhysicalResourceId"].removeprefix(begin)
                item["PhysicalResourceId"] = f"{self._endpoint}-{shown}-{memory}"
            own.append(item)
        answer["StackResourceSummaries"] = own
        return answer


handler = partial(run, handle)
