"""A fleet whose load is far above its target grows in larger steps, also on other instances."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from moto.cloudwatch.models import cloudwatch_backends

from slipway.cli.status import print_status
from slipway.embedded_aws.hosting.telemetry import metrics
from slipway.embedded_aws.identity import ACCOUNT_ID
from slipway.embedded_aws.monitoring import evaluator
from slipway.operations.status import find_status
from slipway.planning.plan import DeploymentPlan
from slipway.stacks.endpoint_stack import EndpointStack
from tests.support.clocks import MovableClock
from tests.support.plans import plan_for
from tests.support.projects import DIGEST, LOCAL, model_config
from tests.support.slipway_stack import SlipwayStack, publish_functions, slipway_stack
from tests.support.waiting import eventually
from tests.synth.assemblies import new_app

pytestmark = pytest.mark.size("all")

NAME = "busy-local"
SCALING = {
    "min_instance_count": 1,
    "max_instance_count": 6,
    "target_invocations_per_instance_per_minute": 3,
    "steps": [
        {"from_times_target": 2, "add_instances": 2},
        {"from_times_target": 10, "add_instances": 5},
    ],
}


def planned(instance: str) -> DeploymentPlan:
    endpoint = {"instances": [instance], "instance_count": 1}
    config = model_config("busy", endpoint=endpoint, autoscaling=SCALING)
    return plan_for(config)


PLANS = {name: planned(f"ml.g5.{name}") for name in ("xlarge", "2xlarge")}


class Fleet:
    """A deployed endpoint, and minutes in which it gets requests."""

    def __init__(self, stack: SlipwayStack, clock: MovableClock) -> None:
        self.stack = stack
        self.clock = clock
        self.sagemaker = stack.stacks.client("sagemaker")

    def count(self) -> int:
        (variant,) = self.sagemaker.describe_endpoint(EndpointName=NAME)["ProductionVariants"]
        return int(variant["DesiredInstanceCount"])

    def minute(self, requests: int) -> None:
        before = self._seen()
        runtime = self.stack.stacks.client("sagemaker-runtime")
        for _ in range(requests):
            runtime.invoke_endpoint(EndpointName=NAME, Body="x")
        eventually(lambda: self._seen() >= before + requests)
        self.clock.pass_minute()

    def becomes(self, count: int) -> None:
        eventually(lambda: self.count() == count, seconds=20)
        self.sagemaker.get_waiter("endpoint_in_service").wait(
            EndpointName=NAME, WaiterConfig={"Delay": 1}
        )

    def _seen(self) -> float:
        data = list(cloudwatch_backends[ACCOUNT_ID][LOCAL.region].metric_data)
        return sum(int(datum.sample_count) for datum in data if datum.name == "Invocations")


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fleet]:
    clock = MovableClock()
    monkeypatch.setattr(metrics, "_INTERVAL_SECONDS", 0.02)
    monkeypatch.setattr(evaluator, "_POLL_SECONDS", 0.05)
    with slipway_stack(tmp_path / "aws", time_scale=0.005, clock=clock) as stack:
        yield Fleet(stack, clock)


def templates(stack: SlipwayStack, folder: Path) -> dict[str, dict[str, Any]]:
    app = new_app(folder)
    target = cdk.Environment(account=LOCAL.account, region=LOCAL.region)
    for name, plan in PLANS.items():
        EndpointStack(app, name, plan=plan, env=target)
    directory, found = Path(app.synth().directory), {}
    for name in PLANS:
        text = (directory / f"{name}.template.json").read_text("utf-8")
        found[name] = json.loads(text.replace(DIGEST, stack.publish("ok")))
        publish_functions(stack.stacks, found[name])
    return found


def test_a_step_adds_instances_after_one_minute(
    fleet: Fleet, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stack, rendered = fleet.stack, templates(fleet.stack, tmp_path / "cdk.out")
    assert stack.stacks.create(NAME, rendered["xlarge"]) == "CREATE_COMPLETE"
    # Less than twice the target of 3: target tracking alone would act, after three minutes.
    fleet.minute(5)
    fleet.minute(7)
    fleet.becomes(3)
    status = find_status(NAME, stack.access, plan=PLANS["xlarge"], log_line_count=0)
    assert [alarm.state for alarm in status.alarms if alarm.scales] == ["ALARM"]
    # Load is no trouble, and the live steps are the files'.
    assert (status.troubles(), status.differences) == ([], ())
    print_status(status, None)
    assert f"scaling    ALARM  {NAME}-ScalingLoadAlarm" in capsys.readouterr().out
    # On other instances the policy has another ARN, and its alarm still carries it out.
    assert stack.stacks.update(NAME, rendered["2xlarge"]) == "UPDATE_COMPLETE"
    # A quiet minute: the pause after the first step ends, and target tracking begins to count anew.
    fleet.minute(1)
    fleet.minute(20)
    fleet.becomes(5)
    (difference,) = find_status(
        NAME, stack.access, plan=planned_with_one_step(), log_line_count=0
    ).differences
    assert (difference.setting, difference.deployed, difference.files) == (
        "autoscaling.steps",
        "2 more from 6, 5 more from 30",
        "2 more from 6",
    )


def planned_with_one_step() -> DeploymentPlan:
    endpoint = {"instances": ["ml.g5.2xlarge"], "instance_count": 1}
    one = SCALING | {"steps": SCALING["steps"][:1]}  # type: ignore[index]
    config = model_config("busy", endpoint=endpoint, autoscaling=one)
    return plan_for(config)
