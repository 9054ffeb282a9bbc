"""What CloudFormation tells of the stack that the endpoint belongs to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..answers import Client
from .targets import DIMENSION, resource_id

_TARGET = "AWS::ApplicationAutoScaling::ScalableTarget"
_POLICY = "AWS::ApplicationAutoScaling::ScalingPolicy"
_ALARM = "AWS::CloudWatch::Alarm"
# Begins the logical ids of the resources that remember.
_UNDO = "EndpointUpdateUndo"


@dataclass(frozen=True)
class Resources:
    """The resources that a stack has created, even if they no longer exist.

    Args:
        found: type and physical id of each.
    """

    found: tuple[tuple[str, str], ...]

    def targets(self, endpoint: str) -> set[str]:
        """Returns the variants of an endpoint whose targets the stack has created."""
        prefix = resource_id(endpoint, "")
        ids = (physical_id.partition("|") for kind, physical_id in self.found if kind == _TARGET)
        return {
            target.removeprefix(prefix)
            for target, _, rest in ids
            if target.startswith(prefix) and rest.startswith(DIMENSION)
        }

    def policies(self, endpoint: str, variant: str) -> set[str]:
        """Returns the names of a variant's policies that the stack has created."""
        mark = f":resource/sagemaker/{resource_id(endpoint, variant)}:policyName/"
        return {
            physical_id.partition(mark)[2]
            for kind, physical_id in self.found
            if kind == _POLICY and mark in physical_id
        }

    def alarms(self) -> list[str]:
        """Returns the names of the stack's alarms."""
        return [physical_id for kind, physical_id in self.found if kind == _ALARM]


class Stack:
    """A stack, during a deployment."""

    def __init__(self, stack_id: str, client: Client) -> None:
        self._id = stack_id
        self._cloudformation = client("cloudformation")

    def status(self) -> str:
        """Returns StackStatus."""
        (stack,) = self._cloudformation.describe_stacks(StackName=self._id)["Stacks"]
        return str(stack["StackStatus"])

    def is_rolled_back(self) -> bool:
        """Returns whether an update is being taken back."""
        return self.status().startswith("UPDATE_ROLLBACK")

    def is_deleted(self) -> bool:
        """Returns whether the whole stack goes, also because its creation failed."""
        return self.status() in ("DELETE_IN_PROGRESS", "ROLLBACK_IN_PROGRESS")

    def resources(self) -> Resources:
        """Returns the resources that the stack has created."""
        return Resources(
            tuple((item["ResourceType"], item["PhysicalResourceId"]) for item in self._listed())
        )

    def new_memory(self, endpoint: str, *, is_first: bool) -> str:
        """Returns what Undo remembered, if it is new in this deployment; otherwise nothing.

        CloudFormation deletes the Undo of the deployment before only when a deployment is over.
        Until then there are two.

        Args:
            endpoint: name of the endpoint.
            is_first: whether the stack has had no Undo before.
        """
        found = sorted(
            (item for item in self._listed() if item["LogicalResourceId"].startswith(_UNDO)),
            key=lambda item: item["LastUpdatedTimestamp"],
        )
        if not found or (len(found) == 1 and not is_first):
            return ""
        newest = found[-1]
        own = own_id(endpoint, newest["LogicalResourceId"])
        return str(newest["PhysicalResourceId"]).removeprefix(own)

    def _listed(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        token: dict[str, Any] = {}
        while True:
            page = self._cloudformation.list_stack_resources(StackName=self._id, **token)
            for item in page["StackResourceSummaries"]:
                status = item["ResourceStatus"]
                if "PhysicalResourceId" not in item or status.startswith("DELETE"):
                    continue
                if status not in ("CREATE_IN_PROGRESS", "CREATE_FAILED"):
                    found.append(item)
            if "NextToken" not in page:
                return found
            token = {"NextToken": page["NextToken"]}


def own_id(endpoint: str, logical_id: str) -> str:
    """Returns the PhysicalResourceId of a custom resource; Undo's goes on with its memory."""
    return f"{endpoint}-{logical_id}-"
