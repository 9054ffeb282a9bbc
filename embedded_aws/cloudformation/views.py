"""Converts stacks, events and change sets to the API's answers."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from slipway.embedded_aws.api import without_none
from slipway.embedded_aws.cloudformation.desired_state import DesiredState
from slipway.embedded_aws.cloudformation.document import invalid
from slipway.embedded_aws.cloudformation.parameters import ParameterValue
from slipway.embedded_aws.cloudformation.stack import Change, ChangeSet, Event, Stack
from slipway.embedded_aws.cloudformation.stack_contents import Output, StackResource

T = TypeVar("T")
PAGE_SIZE = 100


def page(
    member: str,
    items: Sequence[T],
    view: Callable[[T], Any],
    parameters: Mapping[str, Any],
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
    view = {
        **_summary(stack),
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
            without_none(
                {
                    "OutputKey": output.key,
                    "OutputValue": output.value,
                    "Description": output.description,
                    "ExportName": output.export_name,
                }
            )
            for output in stack.outputs.values()
        ],
        "Description": (desired.template.description or None) if desired else None,
    }
    return without_none(view)


def stack_summary(stack: Stack) -> dict[str, Any]:
    description = stack.desired.template.description if stack.desired else None
    return without_none({**_summary(stack), "TemplateDescription": description or None})


def _summary(stack: Stack) -> dict[str, Any]:
    return {
        "StackId": stack.identity.id,
        "StackName": stack.name,
        "CreationTime": stack.created,
        "LastUpdatedTime": stack.updated,
        "DeletionTime": stack.deleted,
        "StackStatus": stack.status,
        "StackStatusReason": stack.reason,
    }


def event_view(stack: Stack, event: Event) -> dict[str, Any]:
    return without_none(
        {
            "StackId": stack.identity.id,
            "EventId": event.event_id,
            "OperationId": event.operation.id,
            "StackName": stack.name,
            "LogicalResourceId": event.logical_id,
            "PhysicalResourceId": event.physical_id,
            "ResourceType": event.type,
            "Timestamp": event.timestamp,
            "ResourceStatus": event.status,
            "ResourceStatusReason": event.reason,
            "ResourceProperties": (
                json.dumps(event.properties) if event.properties is not None else None
            ),
            "ClientRequestToken": event.client_token,
        }
    )


def operation_event_view(found: tuple[Stack, Event]) -> dict[str, Any]:
    view = event_view(*found)
    del view["StackName"]
    return {**view, "EventType": "STACK_EVENT", "OperationType": found[1].operation.type}


def resource_view(stack: Stack, resource: StackResource, time_field: str) -> dict[str, Any]:
    return without_none(
        {
            "StackId": stack.identity.id,
            "StackName": stack.name,
            "LogicalResourceId": resource.logical_id,
            "PhysicalResourceId": resource.physical_id,
            "ResourceType": resource.type,
            time_field: resource.timestamp,
            "ResourceStatus": resource.status,
            "ResourceStatusReason": resource.reason,
            "DriftInformation": {"StackResourceDriftStatus": "NOT_CHECKED"},
        }
    )


def resource_summary(stack: Stack, resource: StackResource) -> dict[str, Any]:
    view = resource_view(stack, resource, "LastUpdatedTimestamp")
    return {name: value for name, value in view.items() if name not in ("StackId", "StackName")}


def change_set_view(stack: Stack, change_set: ChangeSet) -> dict[str, Any]:
    """Returns a change set in the form of DescribeChangeSet, without its changes."""
    desired = change_set.desired
    return without_none(
        {
            **change_set_summary(stack, change_set),
            "Parameters": parameter_views(desired.parameters),
            "NotificationARNs": list(desired.notification_arns),
            "RollbackConfiguration": {},
            "Capabilities": list(desired.capabilities),
            "Tags": tag_views(desired),
            "OnStackFailure": change_set.on_failure,
            "DeploymentConfig": change_set.submitted.get("DeploymentConfig"),
            "ImportExistingResources": change_set.submitted.get("ImportExistingResources"),
        }
    )


def change_set_summary(stack: Stack, change_set: ChangeSet) -> dict[str, Any]:
    return without_none(
        {
            "ChangeSetName": change_set.name,
            "ChangeSetId": change_set.arn,
            "StackId": stack.identity.id,
            "StackName": stack.name,
            "Description": change_set.description,
            "CreationTime": change_set.created,
            "Status": change_set.status,
            "StatusReason": change_set.reason,
            "ExecutionStatus": change_set.execution_status,
            "IncludeNestedStacks": False,
        }
    )


def change_view(change: Change) -> dict[str, Any]:
    scope = (["Properties"] if change.properties else []) + list(change.attributes)
    details: list[dict[str, Any]] = [
        {
            "Target": {
                "Attribute": "Properties",
                "Name": item.name,
                "RequiresRecreation": item.recreation,
                "Path": f"/Properties/{item.name}",
            },
            "Evaluation": "Dynamic" if item.dynamic else "Static",
            "ChangeSource": "ResourceReference" if item.dynamic else "DirectModification",
        }
        for item in change.properties
    ]
    details += [
        {
            "Target": {"Attribute": attribute, "RequiresRecreation": "Never"},
            "Evaluation": "Static",
            "ChangeSource": "DirectModification",
        }
        for attribute in change.attributes
    ]
    return {
        "Type": "Resource",
        "ResourceChange": without_none(
            {
                "Action": change.action,
                "LogicalResourceId": change.logical_id,
                "PhysicalResourceId": change.physical_id,
                "ResourceType": change.type,
                "Replacement": change.replacement,
                "Scope": scope,
                "Details": details,
            }
        ),
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
        without_none(
            {
                "ParameterKey": name,
                "ParameterValue": "****" if value.no_echo else value.submitted,
                "ResolvedValue": value.resolved,
            }
        )
        for name, value in parameters.items()
    ]


def tag_views(desired: DesiredState) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in desired.tags.items()]
