"""A rolling update of an inference component: undone by its alarm, and told by `slipway status`."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from botocore.exceptions import ClientError

from slipway.operations.status import find_status
from tests.support.slipway_stack import SlipwayStack, slipway_stack
from tests.support.waiting import eventually

MODEL = "scale-to-zero-rolling"
NAME = f"{MODEL}-local"
# A batch's 120 s become 48: longer than the test takes.
UNHURRIED = 0.4


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[SlipwayStack]:
    with slipway_stack(tmp_path, time_scale=UNHURRIED, model=MODEL) as stack:
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
def test_an_alarm_undoes_the_update_of_the_copies(stack):
    assert stack.stacks.create(NAME, stack.template("ok", alarm_periods=1)) == "CREATE_COMPLETE"
    assert answers(stack)
    stack.stacks.start_update(NAME, stack.template("failing", alarm_periods=1))
    asked: Counter[bool] = Counter()

    def is_mostly_failing() -> bool:
        asked[answers(stack)] += 1
        return asked[False] > asked[True]

    # The alarm allows for one failure in a hundred, and a slow update is asked more often.
    eventually(is_mostly_failing)
    stack.stacks.aws.pass_minute()
    assert stack.stacks.settled(NAME) == "UPDATE_ROLLBACK_COMPLETE"
    assert all(answers(stack) for _ in range(5))
    status = find_status(NAME, stack.access, plan=None, log_line_count=0)
    first, *told = status.troubles()
    assert first == (
        "the last deployment failed and was undone: the stack is UPDATE_ROLLBACK_COMPLETE"
    )
    # A busy machine is slow as well, so that the alarm on latency may go off beside this one.
    [trip] = [t for t in status.trips if t.alarm.startswith(f"{NAME}-AlarmsServerErrorRate")]
    assert any(
        line.startswith(f"alarm {trip.alarm} went off during the rollout, at ") for line in told
    )
    assert any(
        f"The update was rolled back because of alarms in state ALARM: {NAME}-Alarms" in line
        for line in told
    )
    assert stack.delete() == "DELETE_COMPLETE"
