"""A model's stack, or a scalable target, on an embedded AWS whose clock the tests move."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from moto.cloudwatch.models import cloudwatch_backends

from slipway.config.schema import ModelConfig
from slipway.embedded_aws.clients import LoopbackClients
from slipway.embedded_aws.hosting.telemetry import metrics
from slipway.embedded_aws.identity import ACCOUNT_ID
from slipway.embedded_aws.monitoring import evaluator
from slipway.embedded_aws.monitoring.samples import PeriodOfValues
from slipway.planning.plan import DeploymentPlan
from tests.embedded.hosting.composition import PROGRAMS
from tests.embedded.hosting.conftest import REGION, Account
from tests.embedded.hosting.hosted_components import Hosted
from tests.support.accounts import embedded_aws
from tests.support.clocks import MovableClock
from tests.support.plans import plan_for
from tests.support.slipway_stack import SlipwayStack, slipway_stack
from tests.support.waiting import eventually

GOLDEN = Path(__file__).parents[2] / "golden"


@pytest.fixture
def stack(tmp_path: Path, clock: MovableClock) -> Iterator[SlipwayStack]:
    with slipway_stack(tmp_path, time_scale=0.02, clock=clock) as stack:
        yield stack


def hosted_by(stack: SlipwayStack) -> Hosted:
    return Hosted(Account(stack.stacks.clients, stack.directory))


class ScaledTarget:
    def __init__(
        self, account: Account, clock: MovableClock, resource_id: str, dimension: str
    ) -> None:
        self.account = account
        self.clock = clock
        self.name = resource_id.split("/")[1]
        self.scaling = account.client("application-autoscaling")
        self.target = {
            "ServiceNamespace": "sagemaker",
            "ResourceId": resource_id,
            "ScalableDimension": f"sagemaker:{dimension}",
        }

    def track(self, target: float, metric: str) -> list[str]:
        """Puts a target tracking policy of a predefined metric; returns its alarms' names."""
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
        data: list[Any] = list(cloudwatch_backends[ACCOUNT_ID][REGION].metric_data)
        return sum(
            int(datum.sample_count)
            for datum in data
            if isinstance(datum, PeriodOfValues)
            and any(dimension.value == self.name for dimension in datum.dimensions)
        )


@contextmanager
def clocked_account(directory: Path) -> Iterator[tuple[Account, MovableClock]]:
    clock = MovableClock()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(metrics, "_INTERVAL_SECONDS", 0.02)
        patch.setattr(evaluator, "_POLL_SECONDS", 0.05)
        with embedded_aws(directory, programs=PROGRAMS, time_scale=0.01, clock=clock) as server:
            clients = LoopbackClients(server.connection)
            account = Account(clients, directory)
            account.prepare()
            yield account, clock
            clients.close()


def plan_of(case: str, section: str, **changes: Any) -> DeploymentPlan:
    """Returns the plan of a golden case in which settings of a section are changed."""
    content = yaml.safe_load((GOLDEN / "cases" / f"{case}.yaml").read_text("utf-8"))
    changed = content
    for name in section.split("."):
        changed = changed[name]
    changed |= changes
    return plan_for(ModelConfig.model_validate(content))
