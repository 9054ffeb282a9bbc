"""Rollouts that fail: each is undone, and the old fleet answers all its requests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from slipway.operations.status import find_status
from slipway.rights.pipeline import least_policy
from tests.embedded.hosting.conftest import Account
from tests.support.clients import Clients
from tests.support.projects import LOCAL
from tests.support.recorded_calls import RecordedCalls
from tests.support.rollouts import ENDPOINT, ROLLOUT_MODEL, answer_of, described, planned_rollout
from tests.support.slipway_stack import SlipwayStack, slipway_stack
from tests.support.waiting import eventually

# A step's 240 s become 24: longer than any of these tests takes.
UNHURRIED = 0.1
# Less than the stand-in that lags needs, and more than a busy machine adds.
LATENCY_THRESHOLD_SECONDS = 1.5
# How long a stand-in that is silent is waited for.
RESPONSE_TIMEOUT_SECONDS = 3
COPIES = "scale-to-zero-rolling-local"
KINDS = ("ServerErrorRate", "ModelLatency")


@pytest.fixture
def unhurried(tmp_path: Path) -> Iterator[SlipwayStack]:
    with slipway_stack(
        tmp_path,
        model=ROLLOUT_MODEL,
        time_scale=UNHURRIED,
        response_timeout_seconds=RESPONSE_TIMEOUT_SECONDS,
    ) as stack:
        yield stack


def template(stack: SlipwayStack, mode: str) -> dict[str, Any]:
    rendered = stack.template(mode, alarm_periods=1)
    for resource in rendered["Resources"].values():
        if resource["Properties"].get("MetricName") == "ModelLatency":
            resource["Properties"]["Threshold"] = LATENCY_THRESHOLD_SECONDS * 1e6
    return rendered


def invocations(stack: SlipwayStack, metric: str, config: str) -> float:
    account = Account(stack.stacks.clients, stack.directory)
    fleet = {"VariantName": "AllTraffic", "EndpointConfigName": config}
    return account.metric(metric, EndpointName=stack.name, **fleet).get("Sum", 0)


@pytest.mark.parametrize(
    ("mode", "failed", "kinds"),
    [
        ("failing", "ModelError", ["ServerErrorRate"]),
        pytest.param(
            "silent",
            "ModelError",
            ["ServerErrorRate", "ModelLatency"],
            marks=pytest.mark.size("all"),
        ),
        pytest.param("lagging", None, ["ModelLatency"], marks=pytest.mark.size("all")),
    ],
)
def test_a_canary_that_fails_is_undone(unhurried, mode, failed, kinds):
    stack = unhurried
    assert stack.stacks.create(stack.name, template(stack, "ok")) == "CREATE_COMPLETE"
    old = described(stack)["EndpointConfigName"]
    with Clients(lambda: answer_of(stack), threads=4, pause_seconds=0.02) as clients:
        stack.stacks.start_update(stack.name, template(stack, mode))
        new = eventually(lambda: described(stack).get("PendingDeploymentSummary"))
        new = new["EndpointConfigName"]
        # Enough requests met the new fleet.
        eventually(lambda: invocations(stack, "Invocations", new) >= 3)
        stack.stacks.aws.pass_minute()
        assert stack.stacks.settled(stack.name) == "UPDATE_ROLLBACK_COMPLETE"
        undone = Counter(clients.answers)
        eventually(lambda: clients.answers["x"] >= undone["x"] + 10)
    # Whatever failed failed on the new fleet; the old fleet answered everything it was asked.
    errors = {answer: count for answer, count in clients.answers.items() if answer != "x"}
    assert set(errors) == ({failed} if failed else set())
    assert invocations(stack, "Invocations", new) >= sum(errors.values())
    assert invocations(stack, "InvocationModelErrors", old) == 0
    assert {answer_of(stack) for _ in range(10)} == {"x"}
    assert described(stack)["EndpointConfigName"] == old

    recorded = RecordedCalls(stack.access, f"{LOCAL.region}:{LOCAL.account}")
    status = find_status(stack.name, stack.access, plan=None, log_line_count=0)
    # The alarms' history needs a right of its own.
    policy = least_policy(planned_rollout("canary"), LOCAL, [(None, None)])
    assert recorded.denied_by(policy) == set()
    assert ("cloudwatch:DescribeAlarmHistory", "*") in recorded.made
    first, reason, *told = status.troubles()
    assert first == (
        "the last deployment failed and was undone: the stack is UPDATE_ROLLBACK_COMPLETE"
    )
    alarms = [trip.alarm for trip in status.trips]
    begin = f"{stack.name}-RolloutNewFleet"
    # A busy machine is slow as well, so that the alarm on latency may go off beside another.
    tripped = [kind for alarm in alarms for kind in KINDS if alarm.startswith(f"{begin}{kind}")]
    assert len(tripped) == len(alarms)
    assert set(kinds) <= set(tripped)
    for alarm, line in zip(alarms, told[: len(alarms)], strict=True):
        assert line.startswith(f"alarm {alarm} went off during the rollout, at ")
        assert f"({stack.name}, the newest fleet alone: " in line
        assert ": Threshold Crossed: 1 datapoint [" in line
    # CloudWatch evaluates one alarm after the other. The reason names those that were raised when
    # SageMaker looked, and another may go off before the new fleet is gone.
    before, _, rest = reason.partition("alarms in state ALARM: ")
    named, _, after = rest.partition(".")
    assert before == (
        f'{ENDPOINT}: Resource handler returned message: "The update was rolled back because of '
    )
    assert after == '" (HandlerErrorCode: NotStabilized)'
    assert named in (", ".join(alarms), *alarms)

    # The alarms watch the old fleet again, so that a repaired version may follow at once.
    cloudwatch = stack.stacks.client("cloudwatch")
    found = cloudwatch.describe_alarms(AlarmNames=alarms)["MetricAlarms"]
    assert {alarm["StateValue"] for alarm in found} == {"OK"}


@pytest.fixture
def rolling(tmp_path: Path) -> Iterator[SlipwayStack]:
    """An endpoint that scales to zero. A batch's 120 s become 48: longer than the test takes."""
    with slipway_stack(tmp_path, model=COPIES.removesuffix("-local"), time_scale=0.4) as stack:
        yield stack


def answers(stack: SlipwayStack) -> bool:
    runtime = stack.stacks.client("sagemaker-runtime")
    try:
        answer = runtime.invoke_endpoint(
            EndpointName=COPIES, InferenceComponentName=COPIES, Body=b"ping"
        )
    except ClientError as error:
        if error.response["Error"]["Code"] != "ModelError":
            raise
        return False
    return bool(answer["Body"].read() == b"ping")


@pytest.mark.size("all")
def test_an_alarm_undoes_the_update_of_the_copies(rolling):
    stack = rolling
    assert stack.stacks.create(COPIES, stack.template("ok", alarm_periods=1)) == "CREATE_COMPLETE"
    assert answers(stack)
    stack.stacks.start_update(COPIES, stack.template("failing", alarm_periods=1))
    asked: Counter[bool] = Counter()

    def is_mostly_failing() -> bool:
        asked[answers(stack)] += 1
        return asked[False] > asked[True]

    # The alarm allows for one failure in a hundred, and a slow update is asked more often.
    eventually(is_mostly_failing)
    stack.stacks.aws.pass_minute()
    assert stack.stacks.settled(COPIES) == "UPDATE_ROLLBACK_COMPLETE"
    assert all(answers(stack) for _ in range(5))
    status = find_status(COPIES, stack.access, plan=None, log_line_count=0)
    first, *told = status.troubles()
    assert first == (
        "the last deployment failed and was undone: the stack is UPDATE_ROLLBACK_COMPLETE"
    )
    # A busy machine is slow as well, so that the alarm on latency may go off beside this one.
    [trip] = [t for t in status.trips if t.alarm.startswith(f"{COPIES}-AlarmsServerErrorRate")]
    assert any(
        line.startswith(f"alarm {trip.alarm} went off during the rollout, at ") for line in told
    )
    assert any(
        f"The update was rolled back because of alarms in state ALARM: {COPIES}-Alarms" in line
        for line in told
    )
    assert stack.delete() == "DELETE_COMPLETE"
