"""The last deployment of a stack, and what stands in the way of the next one.

`slipway status` and preflight tell it in the same words.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from botocore.exceptions import ClientError

from slipway.access import paged
from slipway.codes.code import Code
from slipway.errors import Kind, Problem

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
        return self.status.endswith("_IN_PROGRESS") and self.status != "REVIEW_IN_PROGRESS"

    @property
    def failed(self) -> bool:
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


# What happened, and what to do before the stack is deleted.
_DELETABLE = {
    "CREATE_FAILED": ("nothing was removed after the failure", "Read the log"),
    "ROLLBACK_FAILED": ("the first deployment could not be undone", "Remove the cause"),
    "DELETE_FAILED": ("the stack is half deleted", "Remove the cause"),
    # The CDK CLI deletes it unless it is protected.
    "ROLLBACK_COMPLETE": ("the stack has to be deleted first, and is protected", "Read the log"),
}


def find_obstacle(
    name: str, stack: Deployment | None, *, has_endpoint: bool | None, gone: str | None
) -> Problem | None:
    """Returns why a stack at rest takes no deployment, with the way out; None where it does.

    `has_endpoint` is None for the copies on another's endpoint. `gone` is what of the endpoint's
    configuration and model was deleted.
    """
    status = "REVIEW_IN_PROGRESS" if stack is None else stack.status
    option = f"--stack-name {name}"
    if stack is None or status == "REVIEW_IN_PROGRESS":
        code, message = Code.NO_STACK, f"there is no stack of the endpoint {name}, and a new one "
        message += "cannot make an endpoint that is there"
        remedy = f"Delete it with `aws sagemaker delete-endpoint --endpoint-name {name}` when "
        remedy += "nobody uses it, and what `slipway leftovers` lists. Then deploy."
        return Problem(code, Kind.STATE, message, remedy) if has_endpoint else None
    code, stuck = Code.STACK_AT_REST, " ".join(stack.stuck)
    if status == "UPDATE_ROLLBACK_FAILED":
        code = Code.ROLLBACK_FAILED
        message = "the rollback failed, and nothing can be deployed before it is finished"
        remedy = (
            f"Remove the cause, then run `aws cloudformation continue-update-rollback {option}`. "
            f"If that is not possible, add `--resources-to-skip {stuck}`, which leaves the "
            "resource as it is."
        )
    elif status == "UPDATE_FAILED":
        message = "the failed update was not undone"
        remedy = f"Run `aws cloudformation rollback-stack {option}`, then deploy."
    elif status in _DELETABLE and (stack.is_protected or status != "ROLLBACK_COMPLETE"):
        message, first = _DELETABLE[status]
        command = "update-termination-protection --no-enable-termination-protection"
        unprotect = f"`aws cloudformation {command} {option}` and " if stack.is_protected else ""
        remedy = f"{first}, then run {unprotect}`aws cloudformation delete-stack {option}`."
        if status == "DELETE_FAILED" and stuck:
            remedy += f" If the cause stays, add `--retain-resources {stuck}`."
    elif status.endswith("_COMPLETE") and status != "ROLLBACK_COMPLETE" and has_endpoint is False:
        code = Code.ENDPOINT_DELETED
        message = f"the endpoint {name} was deleted, and an update of its stack fails"
        remedy = "Destroy the stack and deploy it."
    elif gone is not None and not stack.in_progress:
        code = Code.SERVED_DELETED
        message = f"its {gone} was deleted, so that updates of the endpoint and new instances can "
        message += "fail"
        remedy = "Make it again under this name, or destroy the stack and deploy it."
    else:
        return None
    return Problem(code, Kind.STATE, message, remedy)


def told(problem: Problem) -> str:
    return f"{problem.message}. {problem.remedy.rstrip('.')} [{problem.code}]"
