"""Two models of Slipway on one endpoint: each answers, scales and goes by itself."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from slipway.codes.code import Code
from slipway.errors import UserError
from slipway.operations.invoke.realtime import Request, invoke
from slipway.operations.leftovers import Leftover, find_leftovers
from slipway.operations.preflight.findings import parted
from slipway.operations.preflight.live import compare_mode
from slipway.operations.preflight.quotas import compare_quotas
from slipway.operations.preflight.scaling import compare_scaling
from slipway.operations.status import Status, find_status
from slipway.planning.plan import DeploymentPlan
from tests.embedded.scaling.conftest import GOLDEN, hosted_by, plan_of
from tests.support.projects import LOCAL
from tests.support.slipway_stack import SlipwayStack, slipway_stack

HOST, GUEST = "host-local", "guest-local"
GUEST_TEMPLATE = GOLDEN / "templates" / "guest.json"


@pytest.fixture
def host(tmp_path: Path) -> Iterator[SlipwayStack]:
    with slipway_stack(tmp_path, time_scale=0.01, model="host") as stack:
        assert stack.create("ok") == "CREATE_COMPLETE"
        yield stack


def add_guest(host: SlipwayStack) -> str:
    return host.stacks.create(GUEST, host.template("ok", GUEST_TEMPLATE))


def ask(host: SlipwayStack, component: str) -> bytes:
    request = Request(HOST, b"ping", "text/plain", "text/plain", None, component)
    return invoke(request, host.access).body


def status(host: SlipwayStack, name: str) -> Status:
    of_another = None if name == HOST else HOST
    return find_status(name, host.access, plan=None, log_line_count=5, host=of_another)


def test_a_guest_answers_and_sleeps_beside_its_host_and_goes_without_it(host):
    assert add_guest(host) == "CREATE_COMPLETE"
    # Both copies fit on the four GPUs of one instance.
    assert hosted_by(host).instances(HOST) == 1
    for name in (HOST, GUEST):
        assert ask(host, name) == b"ping"
        found = status(host, name)
        assert found.troubles() == []
        assert (found.endpoint.name, found.endpoint.component.name) == (HOST, name)
        assert found.endpoint.others == (GUEST if name == HOST else HOST,)
        assert found.log_group == f"/aws/sagemaker/InferenceComponents/{name}"
        assert found.log_lines
        assert {alarm.name.startswith(f"{name}-") for alarm in found.alarms} == {True}

    hosted_by(host).scale(GUEST, 0)
    with pytest.raises(UserError) as caught:
        ask(host, GUEST)
    [problem] = caught.value.problems
    assert problem.code == Code.ASLEEP
    assert "slipway invoke guest --env local" in problem.remedy
    assert status(host, GUEST).notes() == [
        "it sleeps: no copy runs, and the next request wakes it within minutes"
    ]
    assert ask(host, HOST) == b"ping"

    assert host.stacks.delete(GUEST) == "DELETE_COMPLETE"
    assert find_leftovers("guest", LOCAL, host.access) == []
    assert ask(host, HOST) == b"ping"
    with pytest.raises(UserError, match="guest is not deployed in `local`"):
        status(host, GUEST)
    assert host.delete() == "DELETE_COMPLETE"
    assert host.running() == []


def guest_plan(**changes: Any) -> DeploymentPlan:
    return plan_of("guest", "endpoint.scale_to_zero", **changes)


def test_the_plan_of_a_guest_is_compared_with_what_is_deployed(host):
    guest, own = guest_plan(), guest_plan(endpoint_of=None)
    assert parted(compare_mode(guest, host.access)) == ([], [])
    assert add_guest(host) == "CREATE_COMPLETE"

    def differing(plan: DeploymentPlan, name: str, of_another: str | None) -> list[str]:
        found = find_status(name, host.access, plan=plan, log_line_count=0, host=of_another)
        return [each.setting for each in found.differences]

    assert differing(plan_of("host", "endpoint"), HOST, None) == differing(guest, GUEST, HOST) == []
    assert differing(guest_plan(max_copies=5), GUEST, HOST) == ["endpoint.scale_to_zero.max_copies"]
    assert "endpoint.scale_to_zero.endpoint_of" in differing(own, GUEST, HOST)
    for compare in (compare_mode, compare_scaling, compare_quotas):
        assert list(compare(guest, host.access)) == []
    _, [problem] = parted(compare_mode(own, host.access))
    assert (problem.code, problem.message) == (
        Code.MODE_CHANGE,
        f"the copies of guest run on the endpoint {HOST}, and would move to {GUEST}: SageMaker has "
        "no operation that moves them",
    )
    assert host.stacks.delete(GUEST) == "DELETE_COMPLETE"
    assert host.delete() == "DELETE_COMPLETE"
    assert parted(compare_mode(guest, host.access)) == (
        [f"{HOST} is not there yet: `cdk deploy` makes it first"],
        [],
    )


@pytest.mark.size("all")
def test_a_guest_outlives_an_update_of_its_host_but_serves_nothing_without_it(host):
    assert add_guest(host) == "CREATE_COMPLETE"
    before = ask(host, GUEST)
    template = host.template("also ok")
    for resource in template["Resources"].values():
        if resource["Type"] == "AWS::SageMaker::EndpointConfig":
            [variant] = resource["Properties"]["ProductionVariants"]
            variant["ManagedInstanceScaling"]["MaxInstanceCount"] += 1
    assert host.stacks.update(HOST, template) == "UPDATE_COMPLETE"
    assert ask(host, GUEST) == before
    assert status(host, GUEST).troubles() == []

    assert host.delete() == "DELETE_COMPLETE"
    troubles = status(host, GUEST).troubles()
    assert troubles[0] == f"there is no endpoint {HOST}: nothing is served"
    # SageMaker keeps the component, whose stack can still be deleted.
    assert Leftover("inference component", GUEST) in find_leftovers("guest", LOCAL, host.access)
    assert host.stacks.delete(GUEST) == "DELETE_COMPLETE"
    with pytest.raises(ClientError, match="models/host/execution-role-arn"):
        add_guest(host)
