"""Scheduled actions of a deployed stack, on a clock that the test moves."""

from typing import Any

import pytest

from slipway.operations.status.differences import find_differences
from tests.embedded.scaling.conftest import golden_template, hosted_by
from tests.support.capacity_alarms import CapacityAlarm
from tests.support.clocks import MovableClock
from tests.support.plans import plan_for
from tests.support.projects import model_config
from tests.support.slipway_stack import SlipwayStack
from tests.support.waiting import eventually

NAME = "schedules-local"
TARGET = {
    "ServiceNamespace": "sagemaker",
    "ResourceId": f"endpoint/{NAME}/variant/AllTraffic",
    "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
}


class Fleet:
    def __init__(self, stack: SlipwayStack) -> None:
        self.hosting = hosted_by(stack).account
        self.sagemaker = self.hosting.sagemaker
        self.scaling = stack.stacks.client("application-autoscaling")

    def state(self) -> tuple[int, int, int]:
        """Returns the lower bound, the number of instances and the upper bound."""
        (target,) = self.scaling.describe_scalable_targets(
            ServiceNamespace="sagemaker", ResourceIds=[TARGET["ResourceId"]]
        )["ScalableTargets"]
        (variant,) = self.sagemaker.describe_endpoint(EndpointName=NAME)["ProductionVariants"]
        count = variant["DesiredInstanceCount"]
        return target["MinCapacity"], count, target["MaxCapacity"]

    def becomes(self, *state: int) -> None:
        eventually(lambda: self.state() == state, seconds=10)


@pytest.fixture
def fleet(stack: SlipwayStack, clock: MovableClock) -> Fleet:
    clock.move_to("2027-03-26T12:00:00+01:00")
    template = golden_template(stack, "schedules")
    assert stack.stacks.create(NAME, template) == "CREATE_COMPLETE"
    return Fleet(stack)


@pytest.mark.size("all")
def test_schedules_follow_the_local_time_across_daylight_saving_time(fleet, clock):
    assert fleet.state() == (2, 2, 6)
    # Friday evening, in winter.
    clock.move_to("2027-03-26T17:59:00+00:00")
    assert fleet.state() == (2, 2, 6)
    clock.move_to("2027-03-26T18:00:01+00:00")
    fleet.becomes(1, 2, 6)
    # On Monday after the change, seven o'clock is an hour earlier in UTC.
    clock.move_to("2027-03-29T04:59:00+00:00")
    assert fleet.state() == (1, 2, 6)
    clock.move_to("2027-03-29T05:00:01+00:00")
    fleet.becomes(4, 4, 12)
    # A fleet above its new maximum shrinks.
    fleet.hosting.scale(NAME, DesiredInstanceCount=11)
    clock.move_to("2027-03-29T19:00:01+02:00")
    fleet.becomes(1, 6, 6)


def test_bounds_that_a_schedule_set_are_no_difference(stack, fleet, clock):
    clock.move_to("2027-03-29T07:00:01+02:00")
    fleet.becomes(4, 4, 12)
    config = fleet.sagemaker.describe_endpoint(EndpointName=NAME)["EndpointConfigName"]

    def differing(**over: Any) -> dict[str, tuple[str | None, str | None]]:
        model = model_config(
            "schedules",
            endpoint={"instance_count": 2},
            autoscaling={
                "min_instance_count": 2,
                "max_instance_count": 6,
                "target_invocations_per_instance_per_minute": 600,
                "schedules": [
                    {
                        "name": "workday",
                        "at": "cron(0 7 ? * MON-FRI *)",
                        "time_zone": "Europe/Zurich",
                        "min_instance_count": 4,
                        "max_instance_count": 12,
                    },
                    {
                        "name": "evening",
                        "at": "cron(0 19 ? * MON-FRI *)",
                        "time_zone": "Europe/Zurich",
                        "min_instance_count": 1,
                        "max_instance_count": 6,
                    },
                    {
                        "name": "fair",
                        "at": "at(2027-03-01T06:00:00)",
                        "min_instance_count": 8,
                        "max_instance_count": 20,
                    },
                ],
                **over,
            },
            alarms={"model_latency_p99_milliseconds": 600, "at_max_capacity": True},
        )
        plan = plan_for(model)
        found = find_differences(plan, stack.access, config, is_protected=False)
        return {item.setting: (item.deployed, item.files) for item in found}

    assert differing() == {}
    schedules = differing(schedules=[])
    assert set(schedules) == {"autoscaling.schedules"}
    deployed, files = schedules["autoscaling.schedules"]
    assert deployed is not None
    assert "workday (4 to 12 from cron(0 7 ? * MON-FRI *) in Europe/Zurich)" in deployed
    assert files is None


@pytest.mark.size("all")
def test_the_alarm_is_raised_at_the_maximum_and_not_below(stack, fleet, clock):
    alarm = CapacityAlarm(stack, NAME)
    runtime = stack.stacks.client("sagemaker-runtime")

    def serve_with(count: int) -> None:
        fleet.hosting.scale(NAME, DesiredInstanceCount=count)
        for _ in range(3):
            for _ in range(7):
                runtime.invoke_endpoint(EndpointName=NAME, Body=b"x")
            clock.pass_minute()

    serve_with(19)
    alarm.stays_ok_for_one_less()
    serve_with(20)
    alarm.is_raised_by(20)
    serve_with(7)
    alarm.ends()


@pytest.mark.size("all")
def test_suspended_schedules_change_nothing(fleet, clock):
    fleet.scaling.register_scalable_target(
        **TARGET, SuspendedState={"ScheduledScalingSuspended": True}
    )
    # A target that is not suspended tells when the actions of seven o'clock ran.
    other = TARGET | {"ResourceId": "endpoint/other/variant/AllTraffic"}
    fleet.scaling.register_scalable_target(**other, MinCapacity=1, MaxCapacity=2)
    fleet.scaling.put_scheduled_action(
        **other,
        ScheduledActionName="seven",
        Schedule="at(2027-03-29T05:00:00)",
        ScalableTargetAction={"MaxCapacity": 9},
    )

    def largest() -> int:
        (target,) = fleet.scaling.describe_scalable_targets(
            ServiceNamespace="sagemaker", ResourceIds=[other["ResourceId"]]
        )["ScalableTargets"]
        return int(target["MaxCapacity"])

    clock.move_to("2027-03-29T07:00:01+02:00")
    eventually(lambda: largest() == 9, seconds=10)
    assert fleet.state() == (2, 2, 6)
