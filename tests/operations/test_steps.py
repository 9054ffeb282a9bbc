"""A fleet whose load is far above its target grows in larger steps."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from moto.cloudwatch.models import cloudwatch_backends

from slipway.cli.status import print_status
from slipway.embedded_aws.hosting.telemetry import metrics
from slipway.embedded_aws.identity import ACCOUNT_ID
from slipway.embedded_aws.monitoring import evaluator
from slipway.operations.status import find_status
from slipway.planning.plan import DeploymentPlan
from tests.support.clocks import MovableClock
from tests.support.plans import plan_for
from tests.support.projects import LOCAL, model_config
from tests.support.slipway_stack import SlipwayStack, golden_template, slipway_stack
from tests.support.waiting import eventually

pytestmark = pytest.mark.size("all")

NAME = "busy-local"
STEPS = [
    {"from_times_target": 2, "add_instances": 2},
    {"from_times_target": 10, "add_instances": 5},
]
SCALING = {
    "min_instance_count": 1,
    "max_instance_count": 6,
    "target_invocations_per_instance_per_minute": 3,
    "steps": STEPS,
}


def planned(instance: str, **scaling: Any) -> DeploymentPlan:
    endpoint = {"instances": [instance], "instance_count": 1}
    return plan_for(model_config("busy", endpoint=endpoint, autoscaling=SCALING | scaling))


PLANS = {name: planned(f"ml.g5.{name}") for name in ("xlarge", "2xlarge")}


class Fleet:
    """A deployed endpoint, and minutes in which it gets requests."""

    def __init__(self, stack: SlipwayStack, clock: MovableClock) -> None:
        self.name = NAME
        self.stack = stack
        self.clock = clock
        self.sagemaker = stack.stacks.client("sagemaker")

    def count(self) -> int:
        (variant,) = self.sagemaker.describe_endpoint(EndpointName=self.name)["ProductionVariants"]
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
            EndpointName=self.name, WaiterConfig={"Delay": 1}
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


def test_a_step_adds_instances_after_one_minute(
    fleet: Fleet, rendered: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    stack, texts = fleet.stack, rendered(PLANS)
    assert stack.stacks.create(NAME, stack.deployable(texts["xlarge"])) == "CREATE_COMPLETE"
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
    assert stack.stacks.update(NAME, stack.deployable(texts["2xlarge"])) == "UPDATE_COMPLETE"
    # A quiet minute: the pause after the first step ends, and target tracking begins to count anew.
    fleet.minute(1)
    fleet.minute(20)
    fleet.becomes(5)
    one_step = planned("ml.g5.2xlarge", steps=STEPS[:1])
    (difference,) = find_status(NAME, stack.access, plan=one_step, log_line_count=0).differences
    assert (difference.setting, difference.deployed, difference.files) == (
        "autoscaling.steps",
        "2 more from 6, 5 more from 30",
        "2 more from 6",
    )


def test_a_fleet_follows_the_use_of_its_gpus(fleet: Fleet) -> None:
    """The golden stack has 2 to 6 instances of four GPUs each, at 60 % use of a GPU.

    The test puts the metric, because there is no GPU.
    """
    stack, fleet.name = fleet.stack, "gpu-scaling-local"
    template = stack.deployable(golden_template("gpu-scaling"))
    assert stack.stacks.create(fleet.name, template) == "CREATE_COMPLETE"
    variant = {"EndpointName": fleet.name, "VariantName": "AllTraffic"}

    def minutes(count: int, *instances: float) -> None:
        """Lets minutes pass in which each instance uses its GPUs so much, added up over them."""
        for _ in range(count):
            datum = {
                "MetricName": "GPUUtilization",
                "Dimensions": [{"Name": name, "Value": value} for name, value in variant.items()],
                "Timestamp": datetime.fromtimestamp(fleet.clock(), UTC),
                "Values": list(instances),
                "Unit": "Percent",
            }
            stack.stacks.client("cloudwatch").put_metric_data(
                Namespace="/aws/sagemaker/Endpoints", MetricData=[datum]
            )
            fleet.clock.pass_minute()

    # Four GPUs at 75 % are 300, above the target of four times 60. Target tracking takes three
    # minutes. The mean counts, and not the busiest instance.
    minutes(3, 280, 320)
    fleet.becomes(3)
    # 360 is the step from one and a half times the target, which adds two after one minute.
    minutes(1, 200, 200)
    minutes(1, 370, 370)
    fleet.becomes(5)
