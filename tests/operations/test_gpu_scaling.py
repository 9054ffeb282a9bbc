"""A fleet that follows the use of its GPUs. The test puts the metric, because there is no GPU."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from slipway.embedded_aws.monitoring import evaluator
from tests.support.clocks import MovableClock
from tests.support.slipway_stack import SlipwayStack, slipway_stack
from tests.support.waiting import eventually

pytestmark = pytest.mark.size("all")

NAME = "gpu-scaling-local"


class Fleet:
    """The golden stack: 2 to 6 instances of four GPUs each, at 60 % use of a GPU."""

    def __init__(self, stack: SlipwayStack, clock: MovableClock) -> None:
        self.sagemaker = stack.stacks.client("sagemaker")
        self.cloudwatch = stack.stacks.client("cloudwatch")
        self.clock = clock

    def minutes(self, count: int, *instances: float) -> None:
        """Lets minutes pass in which each instance uses its GPUs so much, added up over them."""
        for _ in range(count):
            self.cloudwatch.put_metric_data(
                Namespace="/aws/sagemaker/Endpoints",
                MetricData=[
                    {
                        "MetricName": "GPUUtilization",
                        "Dimensions": [
                            {"Name": "EndpointName", "Value": NAME},
                            {"Name": "VariantName", "Value": "AllTraffic"},
                        ],
                        "Timestamp": datetime.fromtimestamp(self.clock(), UTC),
                        "Values": list(instances),
                        "Unit": "Percent",
                    }
                ],
            )
            self.clock.pass_minute()

    def becomes(self, count: int) -> None:
        eventually(lambda: self._count() == count, seconds=20)
        self.sagemaker.get_waiter("endpoint_in_service").wait(
            EndpointName=NAME, WaiterConfig={"Delay": 1}
        )

    def _count(self) -> int:
        (variant,) = self.sagemaker.describe_endpoint(EndpointName=NAME)["ProductionVariants"]
        return int(variant["DesiredInstanceCount"])


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fleet]:
    clock = MovableClock()
    monkeypatch.setattr(evaluator, "_POLL_SECONDS", 0.05)
    with slipway_stack(tmp_path, time_scale=0.005, model="gpu-scaling", clock=clock) as stack:
        assert stack.create("ok") == "CREATE_COMPLETE"
        yield Fleet(stack, clock)


def test_a_fleet_follows_the_use_of_its_gpus(fleet: Fleet) -> None:
    # Four GPUs at 75 % are 300, above the target of four times 60. Target tracking takes three
    # minutes. The mean counts, and not the busiest instance.
    fleet.minutes(3, 280, 320)
    fleet.becomes(3)
    # 360 is the step from one and a half times the target, which adds two after one minute.
    fleet.minutes(1, 200, 200)
    fleet.minutes(1, 370, 370)
    fleet.becomes(5)
