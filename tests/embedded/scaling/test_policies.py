"""Target tracking of a variant: alarms on real requests, on a clock that the test moves."""

from collections.abc import Callable
from pathlib import Path

import pytest
from botocore.exceptions import ClientError

from tests.embedded.scaling.scaled_targets import ScaledTarget, clocked_account
from tests.support.waiting import eventually


def test_a_realtime_fleet_follows_its_requests(tmp_path: Path) -> None:
    with clocked_account(tmp_path) as (account, clock):
        name = account.begin(account.config(account.variant(account.model())))
        assert account.settled(name)["EndpointStatus"] == "InService"
        resource_id = f"endpoint/{name}/variant/AllTraffic"
        fleet = ScaledTarget(account, clock, resource_id, "variant:DesiredInstanceCount")
        fleet.scaling.register_scalable_target(**fleet.target, MinCapacity=1, MaxCapacity=5)
        with pytest.raises(ClientError, match="The embedded AWS tracks") as caught:
            fleet.track(1.0, "SageMakerVariantProvisionedConcurrencyUtilization")
        assert caught.value.response["Error"]["Code"] == "ValidationException"
        assert fleet.scaling.describe_scaling_policies(**fleet.target)["ScalingPolicies"] == []
        alarms = fleet.track(2.0, "SageMakerVariantInvocationsPerInstance")
        sides = [alarm.rpartition("-Alarm")[2].partition("-")[0] for alarm in alarms]
        assert sides == ["High", "Low"]

        def requests(count: int) -> Callable[[], None]:
            def send() -> None:
                for _ in range(count):
                    account.invoke(name)

            return send

        def becomes(count: int) -> None:
            def counted() -> bool:
                described = account.sagemaker.describe_endpoint(EndpointName=name)
                (variant,) = described["ProductionVariants"]
                return bool(variant["DesiredInstanceCount"] == count)

            eventually(counted, seconds=20)
            account.settled(name)

        fleet.pass_minutes(3, requests(6))
        becomes(3)
        # More than the upper bound would be needed.
        fleet.pass_minutes(3, requests(20))
        becomes(5)
        fleet.pass_minutes(16, requests(1))
        becomes(1)
        # The alarms go with the policy.
        fleet.scaling.deregister_scalable_target(**fleet.target)
        left = account.cloudwatch.describe_alarms(AlarmNamePrefix="TargetTracking-")
        assert left["MetricAlarms"] == []
