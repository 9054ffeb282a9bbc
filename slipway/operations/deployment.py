"""The last deployment of a stack: its status, its resources, and their failures."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from botocore.exceptions import ClientError

_STACK_TYPE = "AWS::CloudFormation::Stack"
# What CloudFormation writes on the resources that it stopped because another one failed.
_CONSEQUENCES = ("Resource creation cancelled", "Resource update cancelled")


@dataclass(frozen=True)
class Deployment:
    """A stack's last deployment.

    Args:
        stack: name of the stack.
        status: CloudFormation's, for example `UPDATE_ROLLBACK_COMPLETE`.
        changed: when it was last created or updated, in UTC.
        endpoint_config_arn: of the endpoint configuration that the stack holds.
        failures: `LOGICAL_ID: reason` of every resource that failed, first failure first.
        is_protected: whether CloudFormation refuses to delete the stack.
    """

    stack: str
    status: str
    changed: datetime
    endpoint_config_arn: str | None
    failures: tuple[str, ...]
    is_protected: bool

    @property
    def in_progress(self) -> bool:
        """Returns whether CloudFormation is still working on it."""
        return self.status.endswith("_IN_PROGRESS") and self.status != "REVIEW_IN_PROGRESS"

    @property
    def failed(self) -> bool:
        """Returns whether it failed, whether or not it was rolled back."""
        return self.status.endswith("_FAILED") or "ROLLBACK" in self.status


def find_deployment(cloudformation: Any, stack: str) -> Deployment | None:
    """Reads a stack; None where there is no such stack.

    Args:
        cloudformation: boto3's client.
        stack: name of the stack.
    """
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
    return Deployment(
        stack=stack,
        status=described["StackStatus"],
        changed=described.get("LastUpdatedTime", described["CreationTime"]),
        endpoint_config_arn=config or None,
        failures=tuple(reversed(list(_failures(cloudformation, stack)))),
        is_protected=described.get("EnableTerminationProtection", False),
    )


def _failures(cloudformation: Any, stack: str) -> Iterator[str]:
    """The failures of the last operation, newest first."""
    pages = cloudformation.get_paginator("describe_stack_events").paginate(StackName=stack)
    for page in pages:
        for event in page["StackEvents"]:
            status, reason = event["ResourceStatus"], event.get("ResourceStatusReason", "")
            if event["ResourceType"] == _STACK_TYPE:
                # A rollback belongs to the operation that it undoes.
                begun = status in ("CREATE_IN_PROGRESS", "UPDATE_IN_PROGRESS", "DELETE_IN_PROGRESS")
                if begun and event["LogicalResourceId"] == stack:
                    return
            elif status.endswith("_FAILED") and not reason.startswith(_CONSEQUENCES):
                yield f"{event['LogicalResourceId']}: {reason}"
