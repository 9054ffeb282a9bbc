"""The function around an endpoint's update, in a stack with other endpoints."""

from typing import Any

import pytest

from slipway.stacks.functions.beside_others import handle

URL = "https://cloudformation-custom-resource-response.s3.amazonaws.com/arn"
UNDO = "AskEndpointUpdateUndo1"


class CloudFormation:
    def __init__(self, status: str) -> None:
        self.status = status

    def describe_stacks(self, **_: Any) -> dict[str, Any]:
        return {"Stacks": [{"StackStatus": self.status}]}

    def list_stack_resources(self, **_: Any) -> dict[str, Any]:
        ids = {
            "AskAlarmsLatency": ("AWS::CloudWatch::Alarm", "team-AskAlarmsLatency-1"),
            UNDO: ("Custom::SlipwayScaling", f"ask-local-{UNDO}-memory"),
            "AskMoreEndpointUpdateUndo2": (
                "Custom::SlipwayScaling",
                "ask-more-local-AskMoreEndpointUpdateUndo2-other",
            ),
            "TellAlarmsLatency": ("AWS::CloudWatch::Alarm", "team-TellAlarmsLatency-1"),
        }
        return {
            "StackResourceSummaries": [
                {
                    "LogicalResourceId": name,
                    "ResourceType": kind,
                    "PhysicalResourceId": physical_id,
                    "ResourceStatus": "CREATE_COMPLETE",
                }
                for name, (kind, physical_id) in ids.items()
            ]
        }


def seen(monkeypatch: pytest.MonkeyPatch, status: str, step: str, request: str) -> Any:
    """Returns CloudFormation as the function for one endpoint sees it."""
    clients: list[Any] = []
    monkeypatch.setattr(
        "slipway.stacks.functions.beside_others.handle_endpoint",
        lambda _event, client, *_: clients.append(client("cloudformation")),
    )
    event = {
        "ResourceProperties": {"EndpointName": "ask-local", "Step": step},
        "LogicalResourceId": f"AskEndpointUpdate{step}ABCD1234",
        "RequestType": request,
        "ResponseURL": URL,
    }
    handle(event, lambda _: CloudFormation(status), lambda *_: None, lambda _: None)
    return clients[0]


def test_it_sees_its_endpoints_resources_under_the_ids_of_a_stack_of_its_own(monkeypatch):
    stacks = seen(monkeypatch, "UPDATE_IN_PROGRESS", "After", "Update")
    found = stacks.list_stack_resources(StackName="team")["StackResourceSummaries"]
    assert {item["LogicalResourceId"]: item["PhysicalResourceId"] for item in found} == {
        "AlarmsLatency": "team-AskAlarmsLatency-1",
        "EndpointUpdateUndo1": "ask-local-EndpointUpdateUndo1-memory",
        # No Undo of its own, because of how its id goes on.
        "MoreEndpointUpdateUndo2": "ask-more-local-AskMoreEndpointUpdateUndo2-other",
    }


@pytest.mark.parametrize(
    ("status", "step", "request_type", "shown"),
    [
        ("UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", "Before", "Delete", "DELETE_IN_PROGRESS"),
        (
            "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS",
            "Before", "Delete", "ROLLBACK_IN_PROGRESS",
        ),
        ("DELETE_IN_PROGRESS", "Before", "Delete", "DELETE_IN_PROGRESS"),
        # The deletion of an Undo after an update is no end of the endpoint.
        (
            "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS",
            "Undo", "Delete", "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS",
        ),
    ],
)  # fmt: skip
def test_an_endpoint_that_an_update_removes_sees_a_deletion(
    monkeypatch, status: str, step: str, request_type: str, shown: str
):
    stacks = seen(monkeypatch, status, step, request_type)
    assert stacks.describe_stacks()["Stacks"][0]["StackStatus"] == shown
