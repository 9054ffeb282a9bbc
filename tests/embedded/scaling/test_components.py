"""Inference components that scale to zero and wake, on a clock that the test moves."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError
from moto.cloudwatch.models import cloudwatch_backends

from embedded_aws.clients import LoopbackClients
from embedded_aws.hosting.families.program import ContainerProgram
from embedded_aws.hosting.telemetry import metrics
from embedded_aws.identity import ACCOUNT_ID
from embedded_aws.monitoring import evaluator
from embedded_aws.monitoring.samples import PeriodOfValues
from tests.embedded.hosting.conftest import REGION, Account
from tests.embedded.hosting.hosted_components import ON_GPU, Hosted
from tests.support.accounts import embedded_aws
from tests.support.clocks import MovableClock
from tests.support.waiting import eventually

PROGRAM = Path(__file__).parents[1] / "hosting" / "stand_in.py"
INVOCATIONS = "SageMakerInferenceComponentInvocationsPerCopy"
CONCURRENT = "SageMakerInferenceComponentConcurrentRequestsPerCopyHighResolution"


class Scaled:
    """A component that is a scalable target."""

    def __init__(self, account: Account, clock: MovableClock) -> None:
        self.hosted = Hosted(account)
        self.account = account
        self.clock = clock
        self.scaling = account.clients.client("application-autoscaling", REGION)
        self.endpoint = self.hosted.endpoint()
        self.name = self.hosted.component(self.endpoint, size=ON_GPU)
        self.scaling.register_scalable_target(**self.target, MinCapacity=0, MaxCapacity=3)

    @property
    def target(self) -> dict[str, str]:
        return {
            "ServiceNamespace": "sagemaker",
            "ResourceId": f"inference-component/{self.name}",
            "ScalableDimension": "sagemaker:inference-component:DesiredCopyCount",
        }

    def track(self, metric: str, target: float = 2.0) -> list[str]:
        """Puts a target tracking policy; returns the names of its alarms."""
        answer = self.scaling.put_scaling_policy(
            **self.target,
            PolicyName="tracking",
            PolicyType="TargetTrackingScaling",
            TargetTrackingScalingPolicyConfiguration={
                "TargetValue": target,
                "ScaleInCooldown": 60,
                "ScaleOutCooldown": 60,
                "PredefinedMetricSpecification": {"PredefinedMetricType": metric},
            },
        )
        return [alarm["AlarmName"] for alarm in answer["Alarms"]]

    def wake_on_failures(self) -> None:
        """Puts the step policy and the alarm of AWS's guide."""
        policy = self.scaling.put_scaling_policy(
            **self.target,
            PolicyName="wake",
            PolicyType="StepScaling",
            StepScalingPolicyConfiguration={
                "AdjustmentType": "ChangeInCapacity",
                "MetricAggregationType": "Maximum",
                "Cooldown": 60,
                "StepAdjustments": [{"MetricIntervalLowerBound": 0, "ScalingAdjustment": 1}],
            },
        )
        self.account.cloudwatch.put_metric_alarm(
            AlarmName="wake",
            Namespace="AWS/SageMaker",
            MetricName="NoCapacityInvocationFailures",
            Dimensions=[{"Name": "InferenceComponentName", "Value": self.name}],
            Statistic="Sum",
            Period=60,
            EvaluationPeriods=1,
            DatapointsToAlarm=1,
            Threshold=1,
            ComparisonOperator="GreaterThanOrEqualToThreshold",
            AlarmActions=[policy["PolicyARN"]],
        )

    def becomes(self, copies: int) -> None:
        eventually(lambda: self.hosted.copies(self.name) == (copies, copies), seconds=20)
        self.hosted.settled(self.name)

    def invoke(self) -> str:
        return self.hosted.invoke(self.endpoint, self.name)

    def pass_minutes(self, minutes: int, act: Callable[[], object] = lambda: None) -> None:
        """Lets minutes pass, and does something in each; a minute is over when it has data."""
        for _ in range(minutes):
            seen = self.measured()
            act()
            eventually(lambda seen=seen: self.measured() > seen)  # type: ignore[misc]
            self.clock.pass_minute()

    def pass_minutes_to_zero(self) -> None:
        """Lets minutes without requests pass until no copy is wanted, and none has data."""

        def is_asleep() -> bool:
            return self.hosted.copies(self.name)[0] == 0

        passed = 0
        while not is_asleep():
            seen = self.measured()
            eventually(lambda seen=seen: self.measured() > seen or is_asleep())  # type: ignore[misc]
            self.clock.pass_minute()
            passed += 1
            assert passed < 40, "fifteen minutes should be enough"

    def minutes_until_released(self) -> int:
        """Lets minutes pass until no instance is left; returns their number.

        The instances are seen idle a moment after the last copy, so more than ten may pass.
        """
        passed = 0

        def is_released() -> bool:
            nonlocal passed
            if self.hosted.instances(self.endpoint) == 0:
                return True
            self.clock.pass_minute()
            passed += 1
            return False

        eventually(is_released)
        return passed

    def measured(self) -> int:
        """The number of values that the component's metrics of minutes have so far."""
        data: list[Any] = list(cloudwatch_backends[ACCOUNT_ID][REGION].metric_data)
        return sum(
            int(datum.sample_count)
            for datum in data
            if isinstance(datum, PeriodOfValues)
            and any(dimension.value == self.name for dimension in datum.dimensions)
        )

    def points(self) -> list[float]:
        """The values of the component's metric of high resolution."""
        data: list[Any] = list(cloudwatch_backends[ACCOUNT_ID][REGION].metric_data)
        return [
            value
            for datum in data
            for value in datum.values
            if datum.name == "ConcurrentRequestsPerCopy"
            and any(dimension.value == self.name for dimension in datum.dimensions)
        ]


@pytest.fixture(scope="module")
def clocked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Account, MovableClock]]:
    clock = MovableClock()
    directory = tmp_path_factory.mktemp("scaled")
    programs = {"tests/stand-in": ContainerProgram((sys.executable, str(PROGRAM)))}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(metrics, "_INTERVAL_SECONDS", 0.02)
        patch.setattr(evaluator, "_POLL_SECONDS", 0.05)
        with embedded_aws(directory, programs=programs, time_scale=0.01, clock=clock) as server:
            clients = LoopbackClients(server.connection)
            account = Account(clients, directory)
            account.prepare()
            yield account, clock
            clients.close()


@pytest.fixture
def scaled(clocked: tuple[Account, MovableClock]) -> Iterator[Scaled]:
    found = Scaled(*clocked)
    yield found
    found.scaling.deregister_scalable_target(**found.target)
    found.hosted.settled(found.name)
    found.hosted.delete(found.name)
    found.account.delete(found.endpoint)


def test_a_component_goes_to_zero_and_wakes(scaled: Scaled) -> None:
    alarms = scaled.track(INVOCATIONS)
    assert [name.rpartition("-Alarm")[2].partition("-")[0] for name in alarms] == ["High", "Low"]
    scaled.wake_on_failures()
    scaled.pass_minutes(3, lambda: [scaled.invoke() for _ in range(6)])
    scaled.becomes(3)
    assert scaled.hosted.instances(scaled.endpoint) == 3

    # No requests: the copies go at once, and the instances ten minutes later.
    scaled.pass_minutes_to_zero()
    scaled.becomes(0)
    assert list((scaled.account.directory / "instances").iterdir()) == []
    assert scaled.minutes_until_released() >= 10

    # The request that wakes it is lost.
    def cold_request() -> None:
        with pytest.raises(ClientError, match="has no capacity"):
            scaled.invoke()

    scaled.pass_minutes(1, cold_request)
    scaled.becomes(1)
    assert scaled.invoke() == "x"
    assert scaled.hosted.instances(scaled.endpoint) == 1


def test_concurrent_requests_are_measured_every_ten_seconds(scaled: Scaled) -> None:
    (high, low) = scaled.track(CONCURRENT, 1.0)
    described = scaled.account.cloudwatch.describe_alarms(AlarmNames=[high, low])["MetricAlarms"]
    by_name = {alarm["AlarmName"]: alarm for alarm in described}
    assert {each["MetricName"] for each in described} == {"ConcurrentRequestsPerCopy"}
    assert {each["Period"] for each in described} == {10}
    assert by_name[high]["EvaluationPeriods"] == 3
    assert by_name[low]["EvaluationPeriods"] == 90
    # Two streams of three seconds are in flight together.
    parts = " ".join(["stream", *"abcdefghij" * 3, "end"]).encode()
    streams = [
        scaled.account.runtime.invoke_endpoint_with_response_stream(
            EndpointName=scaled.endpoint, InferenceComponentName=scaled.name, Body=parts
        )
        for _ in range(2)
    ]
    scaled.clock.pass_minute()
    scaled.becomes(2)
    for stream in streams:
        for _ in stream["Body"]:
            pass
    # The first minute still has the requests.
    before = len(scaled.points())
    scaled.clock.pass_minute()
    eventually(lambda: len(scaled.points()) > before)
    assert max(scaled.points()) == 2
    for _ in range(16):
        scaled.clock.pass_minute()
    scaled.becomes(0)


def test_a_schedule_wakes_a_component_before_its_first_request(scaled: Scaled) -> None:
    scaled.hosted.scale(scaled.name, 0)
    scaled.scaling.put_scheduled_action(
        **scaled.target,
        ScheduledActionName="morning",
        Schedule="rate(1 hour)",
        ScalableTargetAction={"MinCapacity": 2, "MaxCapacity": 3},
    )
    for _ in range(61):
        scaled.clock.pass_minute()
    scaled.becomes(2)


def test_metrics_belong_to_their_resource(scaled: Scaled) -> None:
    with pytest.raises(ClientError, match="is not a metric of the resource inference-component/"):
        scaled.track("SageMakerVariantInvocationsPerInstance")
    dimension = {**scaled.target, "ScalableDimension": "sagemaker:inference-component:Copies"}
    with pytest.raises(ClientError, match="enum value set"):
        scaled.scaling.register_scalable_target(**dimension, MinCapacity=0, MaxCapacity=1)
