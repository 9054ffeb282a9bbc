"""A rolling update of an inference component: undone by its alarm, and told by `slipway status`."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from botocore.exceptions import ClientError

from slipway.operations.status import find_status
from tests.support.clocks import MovableClock
from tests.support.slipway_stack import SlipwayStack, slipway_stack
from tests.support.waiting import eventually

MODEL = "scale-to-zero-rolling"
NAME = f"{MODEL}-local"
# A batch's 120 s become 12: longer than the test takes.
UNHURRIED = 0.1


@pytest.fixture
def clock() -> MovableClock:
    return MovableClock()


@pytest.fixture
def stack(tmp_path: Path, clock: MovableClock) -> Iterator[SlipwayStack]:
    with slipway_stack(tmp_path, time_scale=UNHURRIED, model=MODEL, clock=clock) as stack:
        yield stack


def answers(stack: SlipwayStack) -> bool:
    runtime = stack.stacks.client("sagemaker-runtime")
    try:
        answer = runtime.invoke_endpoint(
            EndpointName=NAME, InferenceComponentName=NAME, Body=b"ping"
        )
    except ClientError as error:
        if error.response["Error"]["Code"] != "ModelError":
            raise
        return False
    return bool(answer["Body"].read() == b"ping")


@pytest.mark.size("all")
def test_an_alarm_undoes_the_update_of_the_copies(stack: SlipwayStack, clock: MovableClock) -> None:
    assert stack.stacks.create(NAME, stack.template("ok", alarm_periods=1)) == "CREATE_COMPLETE"
    assert answers(stack)
    stack.stacks.start_update(NAME, stack.template("failing", alarm_periods=1))
    eventually(lambda: not answers(stack))
    # All of its requests are in a minute that is over now.
    clock.pass_minute()
    assert stack.stacks.settled(NAME) == "UPDATE_ROLLBACK_COMPLETE"
    assert all(answers(stack) for _ in range(5))
    status = find_status(NAME, stack.access, plan=None, log_line_count=0)
    first, *told = status.troubles()
    assert first == (
        "the last deployment failed and was undone: the stack is UPDATE_ROLLBACK_COMPLETE"
    )
    [trip] = status.trips
    assert trip.alarm.startswith(f"{NAME}-AlarmsServerErrorRate")
    assert any(
        line.startswith(f"alarm {trip.alarm} went off during the rollout, at ") for line in told
    )
    assert any(
        f"The update was rolled back because of alarms in state ALARM: {trip.alarm}." in line
        for line in told
    )
    assert stack.delete() == "DELETE_COMPLETE"
