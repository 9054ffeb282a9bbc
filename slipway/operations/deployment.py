"""The last deployment of a stack: its status, its resources, and their failures."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from botocore.exceptions import ClientError

from slipway.access import paged

_STACK_TYPE = "AWS::CloudFormation::Stack"
_BEGINNINGS = ("CREATE_IN_PROGRESS", "UPDATE_IN_PROGRESS", "DELETE_IN_PROGRESS")
# What CloudFormation writes on the resources that it stopped because another one failed.
_CONSEQUENCES = ("Resource creation cancelled", "Resource update cancelled")


@dataclass(frozen=True)
class Deployment:
    """A stack's last deployment.

    `failures` are `LOGICAL_ID: reason` of every resource that failed. A failed rollback comes
    first, then the operation that it undoes; each begins with its first failure. `stuck` are the
    logical ids of the resources that failed in the last operation, such as a rollback.
    """

    stack: str
    status: str
    changed: datetime
    endpoint_config_arn: str | None
    failures: tuple[str, ...]
    is_protected: bool
    stuck: tuple[str, ...] = ()

    @property
    def in_progress(self) -> bool:
        """Returns whether CloudFormation is still working on it."""
        return self.status.endswith("_IN_PROGRESS") and self.status != "REVIEW_IN_PROGRESS"

    @property
    def failed(self) -> bool:
        """Returns whether it failed, whether or not it was rolled back."""
        return self.status.endswith("_FAILED") or "ROLLBACK" in self.status


def find_deployment(cloudformation: Any, stack: str) -> Deployment | None:
    """Reads a stack; None where there is no such stack."""
    try:
        (described,) = cloudformation.describe_stacks(StackName=stack)["Stacks"]
    except ClientError as error:
        if "does not exist" in error.response["Error"]["Message"]:
            return None
        raise
    resources = cloudformation.describe_stack_resources(StackName=stack)["StackResources"]
    config = next(
        (
            item.get("PhysicalResourceId")
            for item in resources
            if item["ResourceType"] == "AWS::SageMaker::EndpointConfig"
            and item["ResourceStatus"] != "DELETE_COMPLETE"
        ),
        None,
    )
    failures = _failures(cloudformation, stack)
    return Deployment(
        stack=stack,
        status=described["StackStatus"],
        changed=described.get("LastUpdatedTime", described["CreationTime"]),
        endpoint_config_arn=config or None,
        failures=tuple(f"{name}: {reason}" for each in failures for name, reason in each),
        is_protected=described.get("EnableTerminationProtection", False),
        stuck=tuple(name for name, _ in failures[0]),
    )


def _failures(cloudformation: Any, stack: str) -> list[list[tuple[str, str]]]:
    """Returns the failures of the last operation, then the failures that it undoes, if it does.

    A rollback is an operation of its own. What earlier tries of it said is over.
    """
    events = list(_events(cloudformation, stack))
    ids = dict.fromkeys(events[place].get("OperationId") for place in (0, -1))
    return [
        [
            (event["LogicalResourceId"], event.get("ResourceStatusReason", ""))
            for event in reversed(events)
            if event.get("OperationId") == operation and _is_failure(event)
        ]
        for operation in ids
    ]


def _is_failure(event: dict[str, Any]) -> bool:
    return (
        event["ResourceType"] != _STACK_TYPE
        and event["ResourceStatus"].endswith("_FAILED")
        and not event.get("ResourceStatusReason", "").startswith(_CONSEQUENCES)
    )


def _events(cloudformation: Any, stack: str) -> Iterator[dict[str, Any]]:
    """Yields events, newest first, back to the beginning of the last create, update or delete."""
    for event in paged(cloudformation, "describe_stack_events", "StackEvents", StackName=stack):
        yield event
        if event["LogicalResourceId"] == stack and event["ResourceStatus"] in _BEGINNINGS:
            return
