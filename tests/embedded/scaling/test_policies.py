"""Scaling policies: alarms on real requests, on a clock that the test moves."""

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
from tests.embedded.hosting.conftest import REGION, Account
from tests.support.accounts import embedded_aws
from tests.support.clocks import MovableClock
from tests.support.waiting import eventually

PROGRAM = Path(__file__).parents[1] / "hosting" / "stand_in.py"


class Fleet:
    """An endpoint that is a scalable target."""

    def __init__(self, account: Account, clock: MovableClock) -> None:
        self.account = account
        self.clock = clock
        self.scaling = account.clients.client("application-autoscaling", REGION)
        self.name = ""

    def deploy(self, low: int, high: int, **config: Any) -> None:
        variant = self.account.variant(self.account.model())
        self.name = self.account.begin(self.account.config(variant, **config))
        assert self.account.settled(self.name)["EndpointStatus"] == "InService"
        self.scaling.register_scalable_target(**self.target, MinCapacity=low, MaxCapacity=high)

    @property
    def target(self) -> dict[str, str]:
        return {
            "ServiceNamespace": "sagemaker",
            "ResourceId": f"endpoint/{self.name}/variant/AllTraffic",
            "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
        }

    def track(self, target: float, **metric: Any) -> list[str]:
        """Puts a target tracking policy; returns the names of its alarms."""
        answer = self.scaling.put_scaling_policy(
            **self.target,
            PolicyName="tracking",
            PolicyType="TargetTrackingScaling",
            TargetTrackingScalingPolicyConfiguration={
                "TargetValue": target,
                "ScaleOutCooldown": 60,
                "ScaleInCooldown": 60,
                **metric,
            },
        )
        return [alarm["AlarmName"] for alarm in answer["Alarms"]]

    def count(self) -> int:
        (variant,) = self.account.sagemaker.describe_endpoint(EndpointName=self.name)[
            "ProductionVariants"
        ]
        return int(variant["DesiredInstanceCount"])

    def becomes(self, count: int) -> None:
        eventually(lambda: self.count() == count, seconds=20)
        self.account.settled(self.name)

    def pass_minutes(self, minutes: int, act: Callable[[], object] = lambda: None) -> None:
        """Lets minutes pass, and does something in each.

        A minute is over only when it has data, because an alarm takes a minute without data for one
        in which nobody looked.
        """
        for _ in range(minutes):
            seen = self.measured()
            act()
            eventually(lambda seen=seen: self.measured() > seen)  # type: ignore[misc]
            self.clock.pass_minute()

    def measured(self) -> int:
        """Returns the number of values that the endpoint's metrics have so far."""
        return sum(
            int(datum.sample_count)
            for datum in list(cloudwatch_backends[ACCOUNT_ID][REGION].metric_data)
            if any(dimension.value == self.name for dimension in datum.dimensions)
        )


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fleet]:
    clock = MovableClock()
    monkeypatch.setattr(metrics, "_INTERVAL_SECONDS", 0.02)
    monkeypatch.setattr(evaluator, "_POLL_SECONDS", 0.05)
    programs = {"tests/stand-in": ContainerProgram((sys.executable, str(PROGRAM)))}
    with embedded_aws(tmp_path, programs=programs, time_scale=0.01, clock=clock) as server:
        clients = LoopbackClients(server.connection)
        account = Account(clients, tmp_path)
        account.prepare()
        yield Fleet(account, clock)
        clients.close()


def test_a_realtime_fleet_follows_its_requests(fleet: Fleet) -> None:
    fleet.deploy(1, 5)
    predefined = {"PredefinedMetricType": "SageMakerVariantInvocationsPerInstance"}
    alarms = fleet.track(2.0, PredefinedMetricSpecification=predefined)
    assert [name.rpartition("-Alarm")[2].partition("-")[0] for name in alarms] == ["High", "Low"]

    def requests(count: int) -> Callable[[], None]:
        def send() -> None:
            for _ in range(count):
                fleet.account.invoke(fleet.name)

        return send

    fleet.pass_minutes(3, requests(6))
    fleet.becomes(3)
    # More than the upper bound would be needed.
    fleet.pass_minutes(3, requests(20))
    fleet.becomes(5)
    fleet.pass_minutes(16, requests(1))
    fleet.becomes(1)
    # The alarms go with the policy.
    fleet.scaling.deregister_scalable_target(**fleet.target)
    left = fleet.account.cloudwatch.describe_alarms(AlarmNamePrefix="TargetTracking-")
    assert left["MetricAlarms"] == []


@pytest.mark.size("all")
def test_an_async_fleet_goes_to_zero_wakes_and_drains(fleet: Fleet) -> None:
    account = fleet.account
    account.s3.create_bucket(Bucket="answers")
    output = {"S3OutputPath": "s3://answers/"}
    fleet.deploy(0, 3, AsyncInferenceConfig={"OutputConfig": output})
    backlog = {
        "Namespace": "AWS/SageMaker",
        "MetricName": "ApproximateBacklogSizePerInstance",
        "Dimensions": [{"Name": "EndpointName", "Value": fleet.name}],
        "Statistic": "Average",
    }
    fleet.track(50.0, CustomizedMetricSpecification=backlog)
    policy = fleet.scaling.put_scaling_policy(
        **fleet.target,
        PolicyName="wake",
        PolicyType="StepScaling",
        StepScalingPolicyConfiguration={
            "AdjustmentType": "ChangeInCapacity",
            "MetricAggregationType": "Maximum",
            "Cooldown": 60,
            "StepAdjustments": [{"MetricIntervalLowerBound": 0, "ScalingAdjustment": 1}],
        },
    )
    account.cloudwatch.put_metric_alarm(
        AlarmName="wake",
        Namespace="AWS/SageMaker",
        MetricName="HasBacklogWithoutCapacity",
        Dimensions=backlog["Dimensions"],
        Statistic="Average",
        Period=60,
        EvaluationPeriods=2,
        Threshold=1,
        ComparisonOperator="GreaterThanOrEqualToThreshold",
        AlarmActions=[policy["PolicyARN"]],
    )
    fleet.pass_minutes(16)
    fleet.becomes(0)
    assert list((account.directory / "instances").iterdir()) == []
    sent = []
    for number in range(5):
        account.put(f"requests/{number}", f"request {number}".encode())
        sent.append(
            account.runtime.invoke_endpoint_async(
                EndpointName=fleet.name, InputLocation=f"s3://artifacts/requests/{number}"
            )["OutputLocation"]
        )
    # Less than the target of 50, so target tracking alone would let them wait.
    fleet.pass_minutes(3)
    fleet.becomes(1)

    def answers() -> set[str]:
        found = account.s3.list_objects_v2(Bucket="answers").get("Contents", [])
        return {f"s3://answers/{item['Key']}" for item in found}

    eventually(lambda: answers() == set(sent))


@pytest.mark.size("all")
def test_other_metrics_are_refused(fleet: Fleet) -> None:
    fleet.deploy(1, 2)
    other = {"PredefinedMetricType": "SageMakerVariantProvisionedConcurrencyUtilization"}
    with pytest.raises(ClientError, match="The embedded AWS tracks") as caught:
        fleet.track(1.0, PredefinedMetricSpecification=other)
    assert caught.value.response["Error"]["Code"] == "ValidationException"
    policies = fleet.scaling.describe_scaling_policies(**fleet.target)
    assert policies["ScalingPolicies"] == []
