"""Policies of inference components, on a clock that the test moves."""

from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError
from moto.cloudwatch.models import cloudwatch_backends

from slipway.embedded_aws.identity import ACCOUNT_ID
from tests.embedded.hosting.conftest import REGION, Account
from tests.embedded.hosting.hosted_components import ON_GPU, Hosted
from tests.embedded.scaling.conftest import ScaledTarget, clocked_account
from tests.support.clocks import MovableClock
from tests.support.waiting import eventually

INVOCATIONS = "SageMakerInferenceComponentInvocationsPerCopy"
CONCURRENT = "SageMakerInferenceComponentConcurrentRequestsPerCopyHighResolution"


class Scaled(ScaledTarget):
    def __init__(self, account: Account, clock: MovableClock) -> None:
        self.hosted = Hosted(account)
        self.endpoint = self.hosted.endpoint()
        name = self.hosted.component(self.endpoint, size=ON_GPU)
        dimension = "inference-component:DesiredCopyCount"
        super().__init__(account, clock, f"inference-component/{name}", dimension)
        self.scaling.register_scalable_target(**self.target, MinCapacity=0, MaxCapacity=3)

    def wake_on_failures(self) -> None:
        # As in AWS's guide.
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

    def points(self) -> list[float]:
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
    with clocked_account(tmp_path_factory.mktemp("scaled")) as found:
        yield found


@pytest.fixture
def scaled(clocked: tuple[Account, MovableClock]) -> Iterator[Scaled]:
    found = Scaled(*clocked)
    yield found
    found.scaling.deregister_scalable_target(**found.target)
    found.hosted.settled(found.name)
    found.hosted.delete(found.name)
    found.account.delete(found.endpoint)


def test_a_component_goes_to_zero_and_wakes(scaled):
    alarms = scaled.track(2.0, INVOCATIONS)
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


def test_concurrent_requests_are_measured_every_ten_seconds(scaled):
    (high, low) = scaled.track(1.0, CONCURRENT)
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


def test_metrics_belong_to_their_resource(scaled):
    with pytest.raises(ClientError, match="is not a metric of the resource inference-component/"):
        scaled.track(2.0, "SageMakerVariantInvocationsPerInstance")
    dimension = {**scaled.target, "ScalableDimension": "sagemaker:inference-component:Copies"}
    with pytest.raises(ClientError, match="enum value set"):
        scaled.scaling.register_scalable_target(**dimension, MinCapacity=0, MaxCapacity=1)
