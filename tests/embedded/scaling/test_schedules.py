"""Scheduled actions of deployed stacks, on a clock that the tests move."""

from typing import Any

import pytest

from slipway.embedded_aws.monitoring import evaluator
from slipway.operations.status.differences import find_differences
from tests.embedded.hosting.hosted_components import Hosted
from tests.embedded.scaling.conftest import hosted_by, plan_of
from tests.support.capacity_alarms import CapacityAlarm
from tests.support.clocks import MovableClock
from tests.support.slipway_stack import SlipwayStack, golden_template
from tests.support.waiting import eventually

NAME, COPIES = "schedules-local", "scale-to-zero-schedules-local"
TARGET = {
    "ServiceNamespace": "sagemaker",
    "ResourceId": f"endpoint/{NAME}/variant/AllTraffic",
    "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
}


class Fleet:
    """An endpoint whose schedules begin later, and what scales: its instances or its copies."""

    def __init__(self, stack: SlipwayStack, clock: MovableClock, name: str, begin: str) -> None:
        self.stack, self.clock, self.name = stack, clock, name
        clock.move_to(begin)
        template = stack.deployable(golden_template(name.removesuffix("-local")))
        assert stack.stacks.create(name, template) == "CREATE_COMPLETE"
        self.hosted: Hosted = hosted_by(stack)
        self.sagemaker = self.hosted.sagemaker
        self.scaling = stack.stacks.client("application-autoscaling")

    def bounds(self) -> tuple[int, int]:
        found = self.scaling.describe_scalable_targets(ServiceNamespace="sagemaker")
        (target,) = [each for each in found["ScalableTargets"] if self.name in each["ResourceId"]]
        return target["MinCapacity"], target["MaxCapacity"]

    def state(self) -> tuple[int, int, int]:
        (variant,) = self.sagemaker.describe_endpoint(EndpointName=self.name)["ProductionVariants"]
        lowest, highest = self.bounds()
        return lowest, variant["DesiredInstanceCount"], highest

    def becomes(self, *state: int) -> None:
        eventually(lambda: self.state() == state, seconds=10)

    def differing(self, section: str, **changes: Any) -> dict[str, tuple[str | None, str | None]]:
        plan = plan_of(self.name.removesuffix("-local"), section, **changes)
        described = self.sagemaker.describe_endpoint(EndpointName=self.name)
        config = described["EndpointConfigName"]
        found = find_differences(plan, self.stack.access, config, is_protected=False)
        return {item.setting: (item.deployed, item.files) for item in found}

    def ask(self, times: int, **more: str) -> None:
        """Sends requests in each of three minutes."""
        runtime = self.stack.stacks.client("sagemaker-runtime")
        for _ in range(3):
            for _ in range(times):
                runtime.invoke_endpoint(EndpointName=self.name, Body=b"x", **more)
            self.clock.pass_minute()


@pytest.fixture
def fleet(stack: SlipwayStack, clock: MovableClock) -> Fleet:
    return Fleet(stack, clock, NAME, "2027-03-26T12:00:00+01:00")


@pytest.fixture
def sleeper(stack: SlipwayStack, clock: MovableClock, monkeypatch: pytest.MonkeyPatch) -> Fleet:
    monkeypatch.setattr(evaluator, "_POLL_SECONDS", 0.05)
    return Fleet(stack, clock, COPIES, "2027-03-28T12:00:00+02:00")


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
    fleet.hosted.account.scale(NAME, DesiredInstanceCount=11)
    clock.move_to("2027-03-29T19:00:01+02:00")
    fleet.becomes(1, 6, 6)


def test_bounds_that_a_schedule_set_are_no_difference(fleet, clock):
    clock.move_to("2027-03-29T07:00:01+02:00")
    fleet.becomes(4, 4, 12)
    assert fleet.differing("autoscaling") == {}
    found = fleet.differing("autoscaling", schedules=[])
    assert set(found) == {"autoscaling.schedules"}
    deployed, files = found["autoscaling.schedules"]
    assert "workday (4 to 12 from cron(0 7 ? * MON-FRI *) in Europe/Zurich)" in deployed
    assert files is None


@pytest.mark.size("all")
def test_a_component_is_awake_from_the_morning_to_the_evening(sleeper, clock):
    def copies() -> tuple[int, int]:
        return sleeper.hosted.copies(COPIES)

    def is_asleep_after_a_minute() -> bool:
        clock.pass_minute()
        return copies() == (0, 0)

    assert sleeper.bounds() == (0, 2)
    eventually(is_asleep_after_a_minute)
    # On Monday morning, nobody asks and nobody waits.
    clock.move_to("2027-03-29T07:00:01+02:00")
    eventually(lambda: copies() == (1, 1))
    assert sleeper.bounds() == (1, 6)
    for _ in range(20):
        clock.pass_minute()
    assert copies() == (1, 1)
    # The bounds of the schedule are no difference to the files.
    section = "endpoint.scale_to_zero"
    assert sleeper.differing(section) == {}
    assert sleeper.differing(section, max_copies=3) == {}
    workday = {
        "name": "workday",
        "at": "cron(0 7 ? * MON-FRI *)",
        "time_zone": "Europe/Zurich",
        "min_copies": 1,
        "max_copies": 6,
    }
    assert sleeper.differing(section, schedules=[workday]) == {
        "endpoint.scale_to_zero.schedules": (
            "evening (0 to 2 from cron(0 20 ? * MON-FRI *) in Europe/Zurich), "
            "workday (1 to 6 from cron(0 7 ? * MON-FRI *) in Europe/Zurich)",
            "workday (1 to 6 from cron(0 7 ? * MON-FRI *) in Europe/Zurich)",
        )
    }
    clock.move_to("2027-03-29T20:00:01+02:00")
    eventually(lambda: sleeper.bounds() == (0, 2))
    eventually(is_asleep_after_a_minute)
    assert sleeper.stack.stacks.delete(COPIES) == "DELETE_COMPLETE"


@pytest.mark.size("all")
def test_the_alarm_is_raised_at_the_maximum_and_not_below(fleet):
    alarm = CapacityAlarm(fleet.stack, NAME)

    def serve_with(count: int) -> None:
        fleet.hosted.account.scale(NAME, DesiredInstanceCount=count)
        fleet.ask(7)

    serve_with(19)
    alarm.stays_ok_for_one_less()
    serve_with(20)
    alarm.is_raised_by(20)
    serve_with(7)
    alarm.ends()


@pytest.mark.size("all")
def test_the_alarm_is_raised_at_the_most_copies_and_not_below(sleeper):
    alarm = CapacityAlarm(sleeper.stack, COPIES)

    def serve_with(count: int) -> None:
        scaled = sleeper.hosted.scale(COPIES, count)
        assert scaled["RuntimeConfig"]["CurrentCopyCount"] == count
        sleeper.ask(7, InferenceComponentName=COPIES)

    serve_with(5)
    alarm.stays_ok_for_one_less()
    serve_with(6)
    alarm.is_raised_by(6)
    serve_with(2)
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
