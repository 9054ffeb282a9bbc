"""Changes that SageMaker refuses while a variant is a scalable target, each in one deployment."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from slipway.codes.code import Code
from slipway.embedded_aws.hosting.fleets.endpoint import Endpoint as HostedEndpoint
from slipway.operations.preflight.findings import parted
from slipway.operations.preflight.scaling import compare_scaling
from slipway.planning.plan import DeploymentPlan
from tests.support.plans import plan_for, with_config
from tests.support.projects import model_config
from tests.support.slipway_stack import SCALING as UNSTEPPED
from tests.support.slipway_stack import SlipwayStack

pytestmark = pytest.mark.size("all")

NAME = "moving-local"
LATER = {"name": "later", "at": "at(2099-01-01T00:00:00)"}
LATER |= {"min_instance_count": 2, "max_instance_count": 6}
SCALING = {
    **UNSTEPPED,
    "steps": [{"from_times_target": 2, "add_instances": 3}],
    # It never runs, and has to be there whenever the target is.
    "schedules": [LATER],
}
ONE, OTHER = "ml.g5.xlarge", "ml.g5.2xlarge"
TARGET = {
    "ServiceNamespace": "sagemaker",
    "ResourceId": f"endpoint/{NAME}/variant/AllTraffic",
    "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
}


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


def planned(state: str) -> DeploymentPlan:
    endpoint, is_scaled = STATES[state]
    return plan_for(
        model_config("moving", endpoint=endpoint, autoscaling=SCALING if is_scaled else None)
    )


Template = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def template(stack: SlipwayStack, rendered: Any) -> Template:
    """Gives the template of a state, with weights that behave as a mode says."""
    texts = rendered({state: planned(state) for state in STATES})
    return lambda state, mode="ok": stack.deployable(texts[state], mode)


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
        named = [action for each in alarms["MetricAlarms"] for action in each["AlarmActions"]]
        made = policies["ScalingPolicies"]
        assert sorted(named) == sorted(
            item["PolicyARN"] for item in made if item["PolicyType"] == "StepScaling"
        )
        actions = self.scaling.describe_scheduled_actions(ServiceNamespace="sagemaker")
        scheduled = [
            (i["ResourceId"], i["ScheduledActionName"]) for i in actions["ScheduledActions"]
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


def described(fleet: Fleet) -> dict[str, Any]:
    found = fleet.scaling.describe_scalable_targets(ServiceNamespace="sagemaker")
    (target,) = found["ScalableTargets"]
    return dict(target)


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


def test_an_update_that_sagemaker_undoes_in_silence_is_undone(
    deployed: SlipwayStack, template: Template, fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = fleet.sagemaker.describe_endpoint(EndpointName=NAME)["EndpointConfigName"]
    with monkeypatch.context() as silent:
        silent.setattr(
            HostedEndpoint, "failure_reason", property(lambda _: None, lambda _, __: None)
        )
        broken = template("other", "dead")
        assert deployed.stacks.update(NAME, broken) == "UPDATE_ROLLBACK_COMPLETE"
    after = next(name for name in broken["Resources"] if name.startswith("EndpointUpdateAfter"))
    reason = deployed.stacks.reason(NAME, after, "UPDATE_FAILED")
    assert f"{NAME} still serves {served}, not " in reason
    # The configuration that serves is still there.
    assert fleet.types() == {"AllTraffic": ONE}
    assert fleet.targets() == {"AllTraffic": (2, 6)}


def test_a_change_of_instances_keeps_what_was_set_by_hand(
    deployed: SlipwayStack, template: Template, fleet: Fleet
) -> None:
    """And CloudFormation applies the template's own change to the target."""
    suspended = {"DynamicScalingInSuspended": True}
    fleet.scaling.register_scalable_target(**TARGET, MinCapacity=3, SuspendedState=suspended)
    changed = template("other")
    assert deployed.stacks.update(NAME, changed) == "UPDATE_COMPLETE"
    assert fleet.targets() == {"AllTraffic": (3, 6)}
    assert described(fleet)["SuspendedState"]["DynamicScalingInSuspended"] is True
    back = template("one")
    for resource in back["Resources"].values():
        if resource["Type"] == "AWS::ApplicationAutoScaling::ScalableTarget":
            resource["Properties"]["MaxCapacity"] = 9
    assert deployed.stacks.update(NAME, back) == "UPDATE_COMPLETE"
    assert (described(fleet)["MinCapacity"], described(fleet)["MaxCapacity"]) == (2, 9)
    assert deployed.stacks.update(NAME, template("one")) == "UPDATE_COMPLETE"
    assert fleet.targets() == {"AllTraffic": (2, 6)}


def test_preflight_tells_of_a_policy_that_was_put_again(
    deployed: SlipwayStack, template: Template, fleet: Fleet
) -> None:
    """A rollback leaves CloudFormation with the ARN of a policy that is gone."""
    plan = planned("one")
    assert parted(compare_scaling(plan, deployed.access)) == ([], [])
    broken = template("other", "dead")
    assert deployed.stacks.update(NAME, broken) == "UPDATE_ROLLBACK_COMPLETE"
    (found,), problems = parted(compare_scaling(plan, deployed.access))
    assert problems == []
    assert found.startswith("autoscaling: invocations-per-instance-")
    assert found.endswith("A policy of the same name was put again, and does not change")
    other = SCALING | {"scale_in_cooldown_seconds": 900}
    changed = with_config(plan, autoscaling=plan.config.autoscaling.model_validate(other))
    _, (problem,) = parted(compare_scaling(changed, deployed.access))
    assert problem.code == Code.LOST_SCALING_POLICY
    # Another type makes new policies, and so the way out.
    assert deployed.stacks.update(NAME, template("other")) == "UPDATE_COMPLETE"
    assert deployed.stacks.update(NAME, template("one")) == "UPDATE_COMPLETE"
    assert parted(compare_scaling(plan, deployed.access)) == ([], [])


def test_preflight_names_a_target_that_somebody_deregistered(
    deployed: SlipwayStack, template: Template, fleet: Fleet
) -> None:
    fleet.scaling.deregister_scalable_target(**TARGET)
    _, (problem,) = parted(compare_scaling(planned("one"), deployed.access))
    assert problem.code == Code.LOST_SCALABLE_TARGET
    assert "--min-capacity 2 --max-capacity 6`. Its policies are gone too:" in problem.remedy
    command = problem.remedy.partition("`")[2].partition("`")[0]
    options = dict(zip(command.split()[3::2], command.split()[4::2], strict=True))
    fleet.scaling.register_scalable_target(
        **{
            "".join(part.title() for part in name.removeprefix("--").split("-")): (
                int(value) if value.isdigit() else value
            )
            for name, value in options.items()
        }
    )
    _, (problem,) = parted(compare_scaling(planned("one"), deployed.access))
    assert problem.code == Code.LOST_SCALING_POLICY
    # One of the two ways out.
    assert deployed.stacks.update(NAME, template("fixed-one")) == "UPDATE_COMPLETE"
    assert deployed.stacks.update(NAME, template("one")) == "UPDATE_COMPLETE"
    assert parted(compare_scaling(planned("one"), deployed.access)) == ([], [])
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
