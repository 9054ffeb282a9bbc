"""Converts stacks, resources and change sets to the API's answers.

The serializer leaves out members that are None, and those that an operation's answer does not have.
One view therefore serves the descriptions and the lists.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from slipway.embedded_aws.cloudformation.desired_state import DesiredState
from slipway.embedded_aws.cloudformation.document import invalid
from slipway.embedded_aws.cloudformation.parameters import ParameterValue
from slipway.embedded_aws.cloudformation.stack import Change, ChangeSet, Stack
from slipway.embedded_aws.cloudformation.stack_contents import Output, StackResource

PAGE_SIZE = 100
_NO_CHANGES = (
    "The submitted information didn't contain changes. Submit different information to create a "
    "change set."
)


def page(
    member: str,
    items: Sequence[Any],
    parameters: Mapping[str, Any],
    view: Callable[[Any], Any] = lambda item: item,
) -> dict[str, Any]:
    """Returns one page of a listing, and NextToken if there is another page."""
    token = parameters.get("NextToken") or "0"
    if not token.isdigit():
        raise invalid("Invalid NextToken")
    start = int(token)
    following = start + PAGE_SIZE
    more = {"NextToken": str(following)} if following < len(items) else {}
    return {member: [view(item) for item in items[start:following]], **more}


def stack_view(stack: Stack) -> dict[str, Any]:
    desired = stack.desired
    description = (desired.template.description or None) if desired else None
    return {
        "StackId": stack.identity.id,
        "StackName": stack.name,
        "CreationTime": stack.created,
        "LastUpdatedTime": stack.updated,
        "DeletionTime": stack.deleted,
        "StackStatus": stack.status,
        "StackStatusReason": stack.reason,
        "DisableRollback": stack.disable_rollback,
        "EnableTerminationProtection": stack.termination_protection,
        "DriftInformation": {"StackDriftStatus": "NOT_CHECKED"},
        "RollbackConfiguration": {},
        "ChangeSetId": stack.change_set_id,
        "RoleARN": stack.role_arn,
        "NotificationARNs": list(desired.notification_arns) if desired else [],
        "Capabilities": list(desired.capabilities) if desired else [],
        "Parameters": parameter_views(desired.parameters) if desired else [],
        "Tags": tag_views(desired) if desired else [],
        "Outputs": [
            {
                "OutputKey": output.key,
                "OutputValue": output.value,
                "Description": output.description,
                "ExportName": output.export_name,
            }
            for output in stack.outputs.values()
        ],
        "Description": description,
        "TemplateDescription": description,
    }


def resource_view(stack: Stack, resource: StackResource) -> dict[str, Any]:
    return {
        "StackId": stack.identity.id,
        "StackName": stack.name,
        "LogicalResourceId": resource.logical_id,
        "PhysicalResourceId": resource.physical_id,
        "ResourceType": resource.type,
        "Timestamp": resource.timestamp,
        "LastUpdatedTimestamp": resource.timestamp,
        "ResourceStatus": resource.status,
        "ResourceStatusReason": resource.reason,
        "DriftInformation": {"StackResourceDriftStatus": "NOT_CHECKED"},
    }


def change_set_view(stack: Stack, change_set: ChangeSet) -> dict[str, Any]:
    """Returns a change set without its changes."""
    desired, submitted = change_set.desired, change_set.submitted
    return {
        "ChangeSetName": change_set.name,
        "ChangeSetId": change_set.arn,
        "StackId": stack.identity.id,
        "StackName": stack.name,
        "Description": submitted.get("Description"),
        "CreationTime": change_set.created,
        "Status": change_set.status,
        "StatusReason": _NO_CHANGES if change_set.plan.is_empty else None,
        "ExecutionStatus": change_set.execution_status,
        "IncludeNestedStacks": False,
        "Parameters": parameter_views(desired.parameters),
        "NotificationARNs": list(desired.notification_arns),
        "RollbackConfiguration": {},
        "Capabilities": list(desired.capabilities),
        "Tags": tag_views(desired),
        "OnStackFailure": submitted.get("OnStackFailure"),
        "DeploymentConfig": submitted.get("DeploymentConfig"),
        "ImportExistingResources": submitted.get("ImportExistingResources"),
    }


def change_view(change: Change) -> dict[str, Any]:
    return {
        "Type": "Resource",
        "ResourceChange": {
            "Action": change.action,
            "LogicalResourceId": change.logical_id,
            "PhysicalResourceId": change.physical_id,
            "ResourceType": change.type,
            "Replacement": change.replacement,
            "Scope": list(dict.fromkeys(each["Target"]["Attribute"] for each in change.details)),
            "Details": list(change.details),
        },
    }


def export_view(export: tuple[Stack, Output]) -> dict[str, Any]:
    stack, output = export
    return {
        "ExportingStackId": stack.identity.id,
        "Name": output.export_name,
        "Value": output.value,
    }


def parameter_views(parameters: Mapping[str, ParameterValue]) -> list[dict[str, Any]]:
    """Returns the parameters; values with NoEcho are hidden."""
    return [
        {
            "ParameterKey": name,
            "ParameterValue": "****" if value.no_echo else value.submitted,
            "ResolvedValue": value.resolved,
        }
        for name, value in parameters.items()
    ]


def tag_views(desired: DesiredState) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in desired.tags.items()]
