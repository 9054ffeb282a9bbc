"""`slipway simulate` and the embedded AWS scale the same traffic alike."""

from functools import partial

import pytest
from botocore.exceptions import ClientError

from slipway.simulation.queues import Bounds, Queue, ServiceTimes
from slipway.simulation.scaling import Fleet, Follows, Scaling
from tests.embedded.scaling.conftest import ScaledTarget, clocked_account
from tests.support.waiting import eventually

TARGET, BOUNDS = 2.0, (1, 5)
MINUTES = [2, 6, 6, 6, 6, 20, 20, 20, *[1] * 17]


def simulated() -> list[int]:
    scaling = Scaling(Follows.INVOCATIONS, TARGET, *BOUNDS, 60, 60)
    fleet, queue = Fleet(scaling, 1, 0, 0.0), Queue(ServiceTimes(0.01, 0, 1), Bounds())
    found = []
    for slot, requests in enumerate(each / 6 for each in MINUTES for _ in range(6)):
        fleet.begin_slot(10.0 * slot)
        measured = queue.step(requests, fleet.serving, 10)
        fleet.end_slot(10.0 * (slot + 1), requests, measured.in_flight, measured.refused)
        found.append(fleet.serving)
    return found[5::6]


def test_both_have_the_same_instances_after_each_minute(tmp_path):
    with clocked_account(tmp_path) as (account, clock):
        name = account.begin(account.config(account.variant(account.model())))
        assert account.settled(name)["EndpointStatus"] == "InService"
        resource_id = f"endpoint/{name}/variant/AllTraffic"
        fleet = ScaledTarget(account, clock, resource_id, "variant:DesiredInstanceCount")
        bounds = dict(zip(("MinCapacity", "MaxCapacity"), BOUNDS, strict=True))
        fleet.scaling.register_scalable_target(**fleet.target, **bounds)
        with pytest.raises(ClientError, match="The embedded AWS tracks") as caught:
            fleet.track(1.0, "SageMakerVariantProvisionedConcurrencyUtilization")
        assert caught.value.response["Error"]["Code"] == "ValidationException"
        assert fleet.scaling.describe_scaling_policies(**fleet.target)["ScalingPolicies"] == []
        alarms = fleet.track(TARGET, "SageMakerVariantInvocationsPerInstance")
        sides = [alarm.rpartition("-Alarm")[2].partition("-")[0] for alarm in alarms]
        assert sides == ["High", "Low"]

        def send(count: int) -> None:
            for _ in range(count):
                account.invoke(name)

        expected = simulated()
        assert set(expected) == {1, 3, 5}
        for requests, count in zip(MINUTES, expected, strict=True):
            fleet.pass_minutes(1, partial(send, requests))

            def is_reached(count: int = count) -> bool:
                described = account.sagemaker.describe_endpoint(EndpointName=name)
                (variant,) = described["ProductionVariants"]
                return variant["DesiredInstanceCount"] == count

            eventually(is_reached, seconds=20)
            account.settled(name)
        # The alarms go with the policy.
        fleet.scaling.deregister_scalable_target(**fleet.target)
        left = account.cloudwatch.describe_alarms(AlarmNamePrefix="TargetTracking-")
        assert left["MetricAlarms"] == []
