"""Schedules of an endpoint that scales to zero, on a clock that the test moves."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from slipway.embedded_aws.monitoring import evaluator
from slipway.operations.status.differences import find_differences
from tests.embedded.scaling.conftest import hosted_by
from tests.support.capacity_alarms import CapacityAlarm
from tests.support.clocks import MovableClock
from tests.support.plans import plan_for
from tests.support.projects import model_config
from tests.support.slipway_stack import SlipwayStack, slipway_stack
from tests.support.waiting import eventually

MODEL = "scale-to-zero-schedules"
NAME = f"{MODEL}-local"
SCHEDULES = [
    {
        "name": "workday",
        "at": "cron(0 7 ? * MON-FRI *)",
        "time_zone": "Europe/Zurich",
        "min_copies": 1,
        "max_copies": 6,
    },
    {
        "name": "evening",
        "at": "cron(0 20 ? * MON-FRI *)",
        "time_zone": "Europe/Zurich",
        "min_copies": 0,
        "max_copies": 2,
    },
]


@pytest.fixture
def clock() -> MovableClock:
    return MovableClock()


@pytest.fixture
def stack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: MovableClock
) -> Iterator[SlipwayStack]:
    monkeypatch.setattr(evaluator, "_POLL_SECONDS", 0.05)
    with slipway_stack(tmp_path, time_scale=0.01, model=MODEL, clock=clock) as stack:
        # Before the schedules, so that none is due.
        clock.move_to("2027-03-28T12:00:00+02:00")
        assert stack.create("ok") == "CREATE_COMPLETE"
        yield stack


def differing(stack: SlipwayStack, **over: Any) -> dict[str, tuple[str | None, str | None]]:
    model = model_config(
        MODEL,
        endpoint={
            "mode": "scale_to_zero",
            "instance_count": 1,
            "scale_to_zero": {
                "max_copies": 2,
                "target_concurrent_requests_per_copy": 5,
                "schedules": SCHEDULES,
                **over,
            },
        },
        autoscaling=None,
        alarms={"model_latency_p99_milliseconds": 600, "at_max_capacity": True},
    )
    plan = plan_for(model)
    described = stack.stacks.client("sagemaker").describe_endpoint(EndpointName=NAME)
    config = described["EndpointConfigName"]
    found = find_differences(plan, stack.access, config, is_protected=False)
    return {item.setting: (item.deployed, item.files) for item in found}


@pytest.mark.size("all")
def test_the_endpoint_is_awake_from_the_morning_to_the_evening(stack, clock):
    hosted = hosted_by(stack)
    scaling = stack.stacks.client("application-autoscaling")

    def bounds() -> tuple[int, int]:
        [target] = scaling.describe_scalable_targets(ServiceNamespace="sagemaker")[
            "ScalableTargets"
        ]
        return target["MinCapacity"], target["MaxCapacity"]

    def pass_minutes_until(wanted: tuple[int, int]) -> None:
        def is_there() -> bool:
            clock.pass_minute()
            return hosted.copies(NAME) == wanted

        eventually(is_there)

    assert bounds() == (0, 2)
    pass_minutes_until((0, 0))
    # On Monday morning, nobody asks and nobody waits.
    clock.move_to("2027-03-29T07:00:01+02:00")
    eventually(lambda: hosted.copies(NAME) == (1, 1))
    assert bounds() == (1, 6)
    for _ in range(20):
        clock.pass_minute()
    assert hosted.copies(NAME) == (1, 1)
    # The bounds of the schedule are no difference to the files.
    assert differing(stack) == {}
    assert differing(stack, max_copies=3) == {}
    assert differing(stack, schedules=SCHEDULES[:1]) == {
        "endpoint.scale_to_zero.schedules": (
            "evening (0 to 2 from cron(0 20 ? * MON-FRI *) in Europe/Zurich), "
            "workday (1 to 6 from cron(0 7 ? * MON-FRI *) in Europe/Zurich)",
            "workday (1 to 6 from cron(0 7 ? * MON-FRI *) in Europe/Zurich)",
        )
    }
    clock.move_to("2027-03-29T20:00:01+02:00")
    eventually(lambda: bounds() == (0, 2))
    pass_minutes_until((0, 0))
    assert stack.delete() == "DELETE_COMPLETE"


@pytest.mark.size("all")
def test_the_alarm_is_raised_at_the_most_copies_and_not_below(stack, clock):
    alarm, hosted = CapacityAlarm(stack, NAME), hosted_by(stack)
    runtime = stack.stacks.client("sagemaker-runtime")

    def serve_with(count: int) -> None:
        assert hosted.scale(NAME, count)["RuntimeConfig"]["CurrentCopyCount"] == count
        for _ in range(3):
            for _ in range(7):
                runtime.invoke_endpoint(EndpointName=NAME, InferenceComponentName=NAME, Body=b"x")
            clock.pass_minute()

    serve_with(5)
    alarm.stays_ok_for_one_less()
    serve_with(6)
    alarm.is_raised_by(6)
    serve_with(2)
    alarm.ends()
    assert stack.delete() == "DELETE_COMPLETE"
