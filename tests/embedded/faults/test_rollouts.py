"""Canaries that fail, deploys that meet each other or are interrupted, and fleets that scaled."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from slipway.facts.instances import instance_types
from slipway.operations.permissions import least_policy
from slipway.operations.quotas import compare_quotas
from slipway.operations.status import find_status
from slipway.planning.plan import DeploymentPlan
from slipway.planning.resolve import resolve
from tests.support.clocks import MovableClock
from tests.support.projects import IMAGE_DIGESTS, LOCAL, lock_for, model_config
from tests.support.recorded_calls import RecordedCalls
from tests.support.slipway_stack import SlipwayStack, slipway_stack
from tests.support.waiting import eventually

MODEL = "rollout-canary"
# A step's 240 s become 24: longer than any of these tests takes.
UNHURRIED = 0.1
# The same 240 s become 1.2.
HURRIED = 0.005
ENDPOINT = "HostingEndpointD164256E"
# Longer than the stand-in that lags needs, which is longer than the alarm's threshold.
RESPONSE_TIMEOUT_SECONDS = 1.5


class Clients:
    """Sends requests in several threads, and counts how they were answered."""

    def __init__(self, stack: SlipwayStack) -> None:
        self._stack = stack
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self.answers: Counter[str] = Counter()
        self._threads = [threading.Thread(target=self._run) for _ in range(4)]

    def __enter__(self) -> Clients:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(0.02):
            answer = answer_of(self._stack)
            with self._lock:
                self.answers[answer] += 1


def answer_of(stack: SlipwayStack) -> str:
    try:
        return stack.invoke()
    except ClientError as error:
        return str(error.response["Error"]["Code"])


@pytest.fixture
def clock() -> MovableClock:
    return MovableClock()


@pytest.fixture
def unhurried(tmp_path: Path, clock: MovableClock) -> Iterator[SlipwayStack]:
    with slipway_stack(
        tmp_path,
        model=MODEL,
        time_scale=UNHURRIED,
        clock=clock,
        response_timeout_seconds=RESPONSE_TIMEOUT_SECONDS,
    ) as stack:
        yield stack


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlipwayStack]:
    """A stack that serves; each test leaves it so."""
    with slipway_stack(
        tmp_path_factory.mktemp("deployed"), model=MODEL, time_scale=HURRIED
    ) as stack:
        assert stack.create("ok") == "CREATE_COMPLETE"
        yield stack


def described(stack: SlipwayStack) -> dict[str, Any]:
    sagemaker = stack.stacks.client("sagemaker")
    found: dict[str, Any] = sagemaker.describe_endpoint(EndpointName=stack.name)
    return found


def invocations(stack: SlipwayStack, metric: str, config: str) -> float:
    """The sum of a metric of one fleet."""
    dimensions = {
        "EndpointName": stack.name, "VariantName": "AllTraffic", "EndpointConfigName": config,
    }  # fmt: skip
    data = stack.stacks.client("cloudwatch").get_metric_statistics(
        Namespace="AWS/SageMaker",
        MetricName=metric,
        Dimensions=[{"Name": name, "Value": value} for name, value in dimensions.items()],
        StartTime=0,
        EndTime=4_000_000_000,
        Period=86_400,
        Statistics=["Sum"],
    )["Datapoints"]
    return sum(datum["Sum"] for datum in data)


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
def test_a_canary_that_fails_is_undone(
    unhurried: SlipwayStack, clock: MovableClock, mode: str, failed: str | None, kinds: list[str]
) -> None:
    stack = unhurried
    assert stack.stacks.create(stack.name, stack.template("ok", alarm_periods=1)) == (
        "CREATE_COMPLETE"
    )
    old = described(stack)["EndpointConfigName"]
    with Clients(stack) as clients:
        stack.stacks.start_update(stack.name, stack.template(mode, alarm_periods=1))
        new = eventually(lambda: described(stack).get("PendingDeploymentSummary"))
        new = new["EndpointConfigName"]
        # Enough requests met the new fleet, and all of them in a minute that is over now.
        eventually(lambda: invocations(stack, "Invocations", new) >= 3)
        clock.pass_minute()
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
    policy = least_policy(planned("canary"), LOCAL, compiling=None, weights=None)
    assert recorded.denied_by(policy) == set()
    assert ("cloudwatch:DescribeAlarmHistory", "*") in recorded.made
    first, reason, *told = status.troubles()
    assert first == (
        "the last deployment failed and was undone: the stack is UPDATE_ROLLBACK_COMPLETE"
    )
    alarms = [trip.alarm for trip in status.trips]
    for alarm, kind, line in zip(alarms, kinds, told[: len(kinds)], strict=True):
        assert alarm.startswith(f"{stack.name}-RolloutNewFleet{kind}")
        assert line.startswith(f"alarm {alarm} went off during the rollout, at ")
        assert f"({stack.name}, the newest fleet alone: " in line
        assert ": Threshold Crossed: 1 datapoint [" in line
    assert reason == (
        f'{ENDPOINT}: Resource handler returned message: "The update was rolled back because of '
        f'alarms in state ALARM: {", ".join(alarms)}." (HandlerErrorCode: NotStabilized)'
    )

    # The alarms watch the old fleet again, so that a repaired version may follow at once.
    cloudwatch = stack.stacks.client("cloudwatch")
    found = cloudwatch.describe_alarms(AlarmNames=alarms)["MetricAlarms"]
    assert {alarm["StateValue"] for alarm in found} == {"OK"}


def test_a_deploy_interrupted_between_two_steps_is_completed_by_the_next(
    deployed: SlipwayStack,
) -> None:
    stack = deployed
    old = described(stack)["EndpointConfigName"]
    stack.stacks.start_update(stack.name, stack.template("slow"))
    eventually(lambda: described(stack).get("PendingDeploymentSummary"))
    stack.stacks.api.cancel_update_stack(StackName=stack.name)
    assert stack.stacks.settled(stack.name) == "UPDATE_ROLLBACK_COMPLETE"
    assert described(stack)["EndpointConfigName"] == old
    assert stack.update("slow") == "UPDATE_COMPLETE"
    after = described(stack)
    assert (after["EndpointStatus"], after["EndpointConfigName"] != old) == ("InService", True)
    assert find_status(stack.name, stack.access, plan=None, log_line_count=0).troubles() == []


def test_a_second_deploy_is_refused_until_the_first_is_over(deployed: SlipwayStack) -> None:
    stack = deployed
    stack.stacks.start_update(stack.name, stack.template("stubborn"))
    new = eventually(lambda: described(stack).get("PendingDeploymentSummary"))
    with pytest.raises(ClientError, match="is in UPDATE_IN_PROGRESS state and can not be updated"):
        stack.stacks.start_update(stack.name, stack.template("ok"))
    assert find_status(stack.name, stack.access, plan=None, log_line_count=0).in_progress
    assert stack.stacks.settled(stack.name) == "UPDATE_COMPLETE"
    assert described(stack)["EndpointConfigName"] == new["EndpointConfigName"]
    assert stack.update("ok") == "UPDATE_COMPLETE"


def test_a_second_fleet_over_the_quota_is_foreseen_and_refused(deployed: SlipwayStack) -> None:
    stack = deployed
    # An old fleet counts until its last process has ended.
    eventually(lambda: len(stack.running()) == 1)
    old = described(stack)["EndpointConfigName"]
    quotas = stack.stacks.client("service-quotas")
    name = "ml.g4dn.xlarge for endpoint usage"
    pages = quotas.get_paginator("list_aws_default_service_quotas").paginate(
        ServiceCode="sagemaker"
    )
    (code,) = (
        quota["QuotaCode"]
        for page in pages
        for quota in page["Quotas"]
        if quota["QuotaName"] == name
    )

    def allow(count: int) -> None:
        quotas.request_service_quota_increase(
            ServiceCode="sagemaker", QuotaCode=code, DesiredValue=count
        )

    allow(3)
    _, (problem,) = compare_quotas(planned("canary"), stack.access)
    assert problem.message == (
        f"the quota '{name}' is 3 in us-east-1, and the deployment needs 4: 2 run, and 2 start "
        "beside them"
    )
    assert problem.remedy == (
        "Ask for more with `aws service-quotas request-service-quota-increase --service-code "
        f"sagemaker --quota-code {code} --desired-value 4 --region us-east-1`, or set "
        "`rollout.strategy: rolling`."
    )
    assert stack.update("slow") == "UPDATE_ROLLBACK_COMPLETE"
    assert (
        f"The account-level service limit '{name}' is 3 Instances, with current utilization of 2 "
        "Instances and a request delta of 2 Instances."
    ) in stack.stacks.reason(stack.name, ENDPOINT, "UPDATE_FAILED")
    assert described(stack)["EndpointConfigName"] == old
    assert answer_of(stack) == "x"

    # One batch beside the old fleet has room.
    assert compare_quotas(planned("rolling"), stack.access) == ([f"quota '{name}' of 3 for 3"], [])
    # Here the remedy is granted at once.
    allow(4)
    assert compare_quotas(planned("canary"), stack.access) == ([f"quota '{name}' of 4 for 4"], [])
    assert stack.update("slow") == "UPDATE_COMPLETE"


def planned(strategy: str) -> DeploymentPlan:
    config = model_config(MODEL, rollout={"strategy": strategy, "step_percent": 50})
    return resolve(config, instance_types(), LOCAL, lock_for(config), IMAGE_DIGESTS)


@pytest.mark.size("all")
def test_a_deploy_keeps_the_size_that_autoscaling_gave(tmp_path: Path) -> None:
    with slipway_stack(tmp_path, model="rollout-linear", time_scale=HURRIED) as stack:
        assert stack.create("ok") == "CREATE_COMPLETE"
        sagemaker = stack.stacks.client("sagemaker")
        sagemaker.update_endpoint_weights_and_capacities(
            EndpointName=stack.name,
            DesiredWeightsAndCapacities=[{"VariantName": "AllTraffic", "DesiredInstanceCount": 3}],
        )
        eventually(lambda: described(stack)["EndpointStatus"] == "InService")
        assert stack.update("slow") == "UPDATE_COMPLETE"
        (variant,) = described(stack)["ProductionVariants"]
        # The template says 4.
        assert (variant["CurrentInstanceCount"], variant["DesiredInstanceCount"]) == (3, 3)
