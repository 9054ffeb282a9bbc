"""The function around an endpoint: what it waits for after it, and in a stack with others."""

# ruff: noqa: N803  # the members of AWS's requests

from typing import Any

import pytest

from slipway.stacks.functions.beside_others import handle
from slipway.stacks.functions.endpoint_update.removal import await_release

KEY = "arn:aws:kms:eu-west-1:210987654321:key/0a1b"
ROLE = "arn:aws:iam::210987654321:role/tiny-local-ExecutionRole-0a1b"
NETWORK = {"SubnetIds": ["subnet-1", "subnet-2"], "SecurityGroupIds": ["sg-1"]}
OWN, OTHER = "AROAOWN:SageMaker", "AROAOTHER:SageMaker"


def held(**more: Any) -> dict[str, Any]:
    return {"RoleArn": ROLE, "RoleId": "AROAOWN", **more}


def grant(number: int, grantee: str, **more: str) -> dict[str, Any]:
    return {"GrantId": str(number), "GranteePrincipal": grantee, "Constraints": {}, **more}


class Holding:
    """EC2 and KMS with what an endpoint leaves, some of which goes after a number of waits."""

    def __init__(self, *requesters: str, grants: list[dict[str, Any]] | None = None) -> None:
        self.requesters = list(requesters)
        self.grants = grants or []
        self.goes_after: int | None = None
        self.waits: list[float] = []

    def client(self, _service: str) -> "Holding":
        return self

    def wait(self, seconds: float) -> None:
        self.waits.append(seconds)
        if len(self.waits) == self.goes_after:
            self.requesters = [each for each in self.requesters if each != OWN]
            self.grants = [each for each in self.grants if ROLE not in each.values()]

    def describe_network_interfaces(self, *, Filters: list[dict[str, Any]]) -> dict[str, Any]:
        assert Filters == [
            {"Name": "subnet-id", "Values": ["subnet-1", "subnet-2"]},
            {"Name": "group-id", "Values": ["sg-1"]},
        ]
        found = [
            {"NetworkInterfaceId": f"eni-{number}", "RequesterId": requester}
            for number, requester in enumerate(self.requesters)
        ]
        return {"NetworkInterfaces": found}

    def list_grants(self, *, KeyId: str, Marker: str = "0") -> dict[str, Any]:
        assert KeyId == KEY
        number = int(Marker)
        more = {"NextMarker": str(number + 1)} if number + 1 < len(self.grants) else {}
        return {"Grants": self.grants[number : number + 1], **more}

    def released(self, **more: Any) -> list[str]:
        return await_release(held(**more), self.client, self.wait)


def test_the_roles_own_interfaces_are_waited_for_and_another_endpoints_are_not():
    account = Holding(OTHER, OWN)
    account.goes_after = 3
    assert account.released(**NETWORK) == ["waited 30 s for SageMaker to give back what it holds"]
    assert account.waits == [10.0] * 3
    account.waits.clear()
    assert account.released(**NETWORK) == []
    assert account.waits == []


@pytest.mark.parametrize("member", ["GranteePrincipal", "RetiringPrincipal"])
def test_grants_that_name_the_role_are_waited_for_on_every_page(member: str):
    others = "arn:aws:iam::210987654321:role/other"
    named = {"GranteePrincipal": others, member: ROLE}
    account = Holding(grants=[grant(0, others), grant(1, others) | named])
    account.goes_after = 2
    assert account.released(VolumeKeyArn=KEY) == [
        "waited 20 s for SageMaker to give back what it holds"
    ]


def test_what_never_goes_is_named_and_the_stack_goes_on():
    account = Holding(OWN, grants=[grant(7, ROLE)])
    assert account.released(**NETWORK, VolumeKeyArn=KEY) == [
        "waited 800 s for SageMaker to give back what it holds",
        "still there: eni-0, grant 7",
    ]
    # Lambda ends the function after 900 seconds, and settling the log comes before.
    assert sum(account.waits) == 800


def test_what_names_nobody_keeps_the_role_for_five_minutes():
    service = "arn:aws:iam::999999999999:root"
    account = Holding("999999999999", grants=[grant(0, service)])
    assert account.released(**NETWORK, VolumeKeyArn=KEY) == [
        "waited 300 s for SageMaker to give back what it holds",
        "still there: eni-0, grant 0",
    ]
    # The role's own is waited for longer.
    account = Holding("999999999999", OWN)
    account.goes_after = 40
    account.released(**NETWORK)
    assert len(account.waits) == 40


def test_an_account_that_may_not_be_looked_at_keeps_the_role_for_five_minutes():
    account = Holding()
    refused = PermissionError("kms:ListGrants is refused")

    def list_grants(**_: Any) -> None:
        raise refused

    account.list_grants = list_grants  # type: ignore[assignment, method-assign]
    assert account.released(VolumeKeyArn=KEY) == [
        "waited 300 s for SageMaker to give back what it holds",
        "still there: unknown: kms:ListGrants is refused",
    ]


# In a stack with other endpoints

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
        "ResponseURL": "https://answer",
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
