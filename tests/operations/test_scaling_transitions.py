"""Changes that SageMaker refuses while a variant is a scalable target, each in one deployment."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest

from stacks.endpoint_stack import EndpointStack
from tests.support.plans import plan_for
from tests.support.projects import DIGEST, LOCAL, model_config
from tests.support.slipway_stack import SlipwayStack, publish_functions, slipway_stack
from tests.synth.assemblies import new_app

pytestmark = pytest.mark.size("all")

NAME = "moving-local"
SCALING = {
    "min_instance_count": 2,
    "max_instance_count": 6,
    "target_invocations_per_instance_per_minute": 600,
    "steps": [{"from_times_target": 2, "add_instances": 3}],
    # It never runs, and has to be there whenever the target is.
    "schedules": [
        {
            "name": "later",
            "at": "at(2099-01-01T00:00:00)",
            "min_instance_count": 2,
            "max_instance_count": 6,
        }
    ],
}
ONE, OTHER = "ml.g5.xlarge", "ml.g5.2xlarge"


def variants(*named: tuple[str, str]) -> list[dict[str, Any]]:
    return [{"name": name, "weight": 1, "instances": [kind]} for name, kind in named]


# What `endpoint` says, and whether it is scaled.
STATES: dict[str, tuple[dict[str, Any], bool]] = {
    "one": ({"instances": [ONE]}, True),
    "other": ({"instances": [OTHER]}, True),
    "split": ({"variants": variants(("AllTraffic", OTHER), ("candidate", ONE))}, True),
    "renamed": ({"variants": variants(("AllTraffic", OTHER), ("challenger", ONE))}, True),
    "fixed": ({"instances": [OTHER]}, False),
    "fixed-one": ({"instances": [ONE]}, False),
}
# One life: each step is an update from the state before it.
STEPS = [
    ("other", "another type"),
    ("split", "one variant split into two"),
    ("renamed", "a variant renamed"),
    ("other", "a variant removed"),
    ("fixed", "autoscaling dropped"),
    ("other", "autoscaling back"),
    ("fixed-one", "autoscaling dropped with another type"),
]

Template = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlipwayStack]:
    with slipway_stack(tmp_path_factory.mktemp("moving"), time_scale=0.005) as stack:
        yield stack


@pytest.fixture(scope="module")
def template(stack: SlipwayStack, tmp_path_factory: pytest.TempPathFactory) -> Template:
    """Gives the template of a state, with weights that behave as a mode says."""
    app = new_app(tmp_path_factory.mktemp("cdk.out"))
    target = cdk.Environment(account=LOCAL.account, region=LOCAL.region)
    for state, (endpoint, is_scaled) in STATES.items():
        config = model_config(
            "moving", endpoint=endpoint, autoscaling=SCALING if is_scaled else None
        )
        plan = plan_for(config)
        EndpointStack(app, state, plan=plan, env=target)
    directory = Path(app.synth().directory)

    def of(state: str, mode: str = "ok") -> dict[str, Any]:
        text = (directory / f"{state}.template.json").read_text("utf-8")
        content: dict[str, Any] = json.loads(text.replace(DIGEST, stack.publish(mode)))
        publish_functions(stack.stacks, content)
        return content

    return of


class Fleet:
    """What SageMaker and Application Auto Scaling say of the endpoint."""

    def __init__(self, stack: SlipwayStack) -> None:
        self.sagemaker = stack.stacks.client("sagemaker")
        self.scaling = stack.stacks.client("application-autoscaling")
        self.cloudwatch = stack.stacks.client("cloudwatch")

    def counts(self) -> dict[str, int]:
        described = self.sagemaker.describe_endpoint(EndpointName=NAME)
        return {
            item["VariantName"]: item["DesiredInstanceCount"]
            for item in described["ProductionVariants"]
        }

    def types(self) -> dict[str, str]:
        described = self.sagemaker.describe_endpoint(EndpointName=NAME)
        config = self.sagemaker.describe_endpoint_config(
            EndpointConfigName=described["EndpointConfigName"]
        )
        return {item["VariantName"]: item["InstanceType"] for item in config["ProductionVariants"]}

    def scale(self, count: int) -> None:
        self.sagemaker.update_endpoint_weights_and_capacities(
            EndpointName=NAME,
            DesiredWeightsAndCapacities=[
                {"VariantName": name, "DesiredInstanceCount": count} for name in self.counts()
            ],
        )

    def targets(self) -> dict[str, tuple[int, int]]:
        """Limits of every variant that is registered and has its policies, which alarms name."""
        found = self.scaling.describe_scalable_targets(ServiceNamespace="sagemaker")
        policies = self.scaling.describe_scaling_policies(ServiceNamespace="sagemaker")
        # Each name ends with the digest of the variant's types.
        put = [
            (item["ResourceId"], item["PolicyName"].rpartition("-")[0])
            for item in policies["ScalingPolicies"]
        ]
        assert sorted(put) == sorted(
            (item["ResourceId"], name)
            for item in found["ScalableTargets"]
            for name in ("invocations-per-instance", "steps")
        )
        alarms = self.cloudwatch.describe_alarms(AlarmNamePrefix=f"{NAME}-Scaling")
        assert sorted(
            action for each in alarms["MetricAlarms"] for action in each["AlarmActions"]
        ) == (
            sorted(
                item["PolicyARN"]
                for item in policies["ScalingPolicies"]
                if item["PolicyType"] == "StepScaling"
            )
        )
        actions = self.scaling.describe_scheduled_actions(ServiceNamespace="sagemaker")
        scheduled = [
            (item["ResourceId"], item["ScheduledActionName"])
            for item in actions["ScheduledActions"]
        ]
        assert sorted(scheduled) == sorted(
            (item["ResourceId"], "later") for item in found["ScalableTargets"]
        )
        prefix = f"endpoint/{NAME}/variant/"
        return {
            item["ResourceId"].removeprefix(prefix): (item["MinCapacity"], item["MaxCapacity"])
            for item in found["ScalableTargets"]
        }


@pytest.fixture(scope="module")
def fleet(stack: SlipwayStack) -> Fleet:
    return Fleet(stack)


@pytest.mark.parametrize("scaled_out", [False, True], ids=["at rest", "scaled out"])
def test_every_change_is_one_deployment(
    stack: SlipwayStack, template: Template, fleet: Fleet, scaled_out: bool
) -> None:
    assert stack.stacks.create(NAME, template("one")) == "CREATE_COMPLETE"
    for state, step in STEPS:
        if scaled_out:
            fleet.scale(5)
        before = fleet.counts()
        assert stack.stacks.update(NAME, template(state)) == "UPDATE_COMPLETE", step
        endpoint, is_scaled = STATES[state]
        if "variants" in endpoint:
            types = {item["name"]: item["instances"][0] for item in endpoint["variants"]}
        else:
            types = {"AllTraffic": endpoint["instances"][0]}
        assert fleet.types() == types, step
        kept = before if is_scaled else {}
        assert fleet.counts() == {name: kept.get(name, 2) for name in types}, step
        assert fleet.targets() == (dict.fromkeys(types, (2, 6)) if is_scaled else {}), step
    assert stack.stacks.delete(NAME) == "DELETE_COMPLETE"


@pytest.fixture(scope="module")
def deployed(stack: SlipwayStack, template: Template, fleet: Fleet) -> Iterator[SlipwayStack]:
    """The endpoint on its first type, scaled out, with its artifact."""
    assert stack.stacks.create(NAME, template("one")) == "CREATE_COMPLETE"
    fleet.scale(5)
    yield stack
    assert stack.stacks.delete(NAME) == "DELETE_COMPLETE"
    assert fleet.targets() == {}


def failing(template: dict[str, Any]) -> dict[str, Any]:
    """A template with a last resource that fails."""
    types = {resource["Type"]: name for name, resource in template["Resources"].items()}
    scaled = types.get("AWS::ApplicationAutoScaling::ScalingPolicy")
    alias = {
        "Type": "AWS::KMS::Alias",
        "DependsOn": scaled or types["AWS::SageMaker::Endpoint"],
        "Properties": {"AliasName": "alias/a", "TargetKeyId": "missing"},
    }
    return template | {"Resources": template["Resources"] | {"Alias": alias}}


def kept(state: str) -> int:
    """Instances after an update to a state and back: an unscaled variant has the file's count."""
    return 2 if state == "fixed" else 5


@pytest.mark.parametrize("state", ["other", "renamed", "fixed"])
@pytest.mark.parametrize("when", ["in the endpoint", "after everything"])
def test_a_failed_update_puts_the_targets_back(
    deployed: SlipwayStack, template: Template, fleet: Fleet, state: str, when: str
) -> None:
    fleet.scale(5)
    broken = template(state, "dead") if when == "in the endpoint" else failing(template(state))
    assert deployed.stacks.update(NAME, broken) == "UPDATE_ROLLBACK_COMPLETE"
    assert fleet.types() == {"AllTraffic": ONE}
    assert fleet.counts() == {"AllTraffic": 5 if when == "in the endpoint" else kept(state)}
    assert fleet.targets() == {"AllTraffic": (2, 6)}


def test_a_cancelled_update_puts_the_targets_back(
    deployed: SlipwayStack, template: Template, fleet: Fleet
) -> None:
    deployed.stacks.start_update(NAME, template("other", "slow"))
    deployed.stacks.await_event(NAME, "HostingEndpointD164256E", "UPDATE_IN_PROGRESS")
    deployed.stacks.api.cancel_update_stack(StackName=NAME)
    assert deployed.stacks.settled(NAME) == "UPDATE_ROLLBACK_COMPLETE"
    assert fleet.types() == {"AllTraffic": ONE}
    assert fleet.targets() == {"AllTraffic": (2, 6)}
