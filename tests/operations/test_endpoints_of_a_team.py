"""Two endpoints in a stack of a team's own, through their life: each knows its own resources."""

import json
from collections.abc import Callable
from typing import Any

import aws_cdk as cdk
import pytest

from slipway.cdk import App, Endpoint
from slipway.config.names import KEPT_LOGS
from tests.support.projects import DIGEST, config_text, write_project
from tests.support.slipway_stack import SlipwayStack, publish_functions
from tests.synth.assemblies import CONTEXT

pytestmark = pytest.mark.size("all")

TEAM = "team"
ONE, OTHER = "ml.g4dn.xlarge", "ml.g5.2xlarge"
SCALING = """
autoscaling:
  min_instance_count: 2
  max_instance_count: 6
  target_invocations_per_instance_per_minute: 600
  steps: [{from_times_target: 2, add_instances: 3}]

alarms:
"""
# The names of the endpoints in each state of the stack, and their type.
STATES = {
    "one": (("ask", "tell"), ONE),
    "other": (("ask", "tell"), OTHER),
    "alone": (("tell",), OTHER),
    "added": (("tell", "late"), OTHER),
}


Template = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def template(stack: SlipwayStack, tmp_path_factory: pytest.TempPathFactory) -> Template:
    """Gives the template of a state, with weights that kill one endpoint's container if asked."""
    folder = tmp_path_factory.mktemp("projects")
    for state, (names, kind) in STATES.items():
        edits = (("\nalarms:\n", SCALING), (f"instances: [{ONE}]", f"instances: [{kind}]"))
        root = folder / state
        root.mkdir()
        models = {name: config_text(name, *edits) for name in names}
        write_project(root, models, published=names)
        app = App(root, context=CONTEXT, outdir=str(folder / f"{state}.out"))
        team = cdk.Stack(app, TEAM, env=app.env)
        for name in names:
            Endpoint(team, name.capitalize(), config=name)
        app.synth()

    def of(state: str, dead: str | None = None) -> dict[str, Any]:
        text = (folder / f"{state}.out" / f"{TEAM}.template.json").read_text("utf-8")
        content: dict[str, Any] = json.loads(text)
        for name, resource in content["Resources"].items():
            mode = "dead" if dead and name.startswith(dead) else "ok"
            changed = json.dumps(resource).replace(DIGEST, stack.publish(mode))
            content["Resources"][name] = json.loads(changed)
        publish_functions(stack.stacks, content)
        return content

    return of


class Fleets:
    """What SageMaker and Application Auto Scaling say of the endpoints."""

    def __init__(self, stack: SlipwayStack) -> None:
        self._sagemaker = stack.stacks.client("sagemaker")
        self._scaling = stack.stacks.client("application-autoscaling")
        self._cloudwatch = stack.stacks.client("cloudwatch")

    def counts(self) -> dict[str, int]:
        found = {}
        for item in self._sagemaker.list_endpoints()["Endpoints"]:
            described = self._sagemaker.describe_endpoint(EndpointName=item["EndpointName"])
            (variant,) = described["ProductionVariants"]
            found[item["EndpointName"]] = variant["DesiredInstanceCount"]
        return found

    def scale(self, name: str, count: int) -> None:
        self._sagemaker.update_endpoint_weights_and_capacities(
            EndpointName=name,
            DesiredWeightsAndCapacities=[
                {"VariantName": "AllTraffic", "DesiredInstanceCount": count}
            ],
        )

    def scaled(self) -> set[str]:
        """Returns the endpoints that scale, and checks that the alarms of steps name live ones."""
        policies = self._scaling.describe_scaling_policies(ServiceNamespace="sagemaker")
        stepped = {
            item["PolicyARN"]
            for item in policies["ScalingPolicies"]
            if item["PolicyType"] == "StepScaling"
        }
        alarms = self._cloudwatch.describe_alarms(AlarmNamePrefix=f"{TEAM}-")["MetricAlarms"]
        named = {
            action
            for alarm in alarms
            for action in alarm["AlarmActions"]
            if "policyName/steps" in action
        }
        assert named == stepped
        targets = self._scaling.describe_scalable_targets(ServiceNamespace="sagemaker")
        return {item["ResourceId"].split("/")[1] for item in targets["ScalableTargets"]}


BOTH = {"ask-local", "tell-local"}


def test_two_endpoints_change_together_and_alone(stack: SlipwayStack, template: Template) -> None:
    fleets, stacks = Fleets(stack), stack.stacks
    assert stacks.create(TEAM, template("one")) == "CREATE_COMPLETE"
    fleets.scale("ask-local", 4)
    fleets.scale("tell-local", 5)
    # A failed update puts each endpoint's targets back.
    assert stacks.update(TEAM, template("other", "Tell")) == "UPDATE_ROLLBACK_COMPLETE"
    assert fleets.counts() == {"ask-local": 4, "tell-local": 5}
    assert fleets.scaled() == BOTH
    # Both change in one update, and one goes in the next.
    assert stacks.update(TEAM, template("other")) == "UPDATE_COMPLETE"
    assert fleets.counts() == {"ask-local": 4, "tell-local": 5}
    assert fleets.scaled() == BOTH
    assert stacks.update(TEAM, template("alone")) == "UPDATE_COMPLETE"
    assert fleets.counts() == {"tell-local": 5}
    assert fleets.scaled() == {"tell-local"}
    # The log of an endpoint that an update could not add is kept.
    assert stacks.update(TEAM, template("added", "Late")) == "UPDATE_ROLLBACK_COMPLETE"
    groups = stacks.client("logs").describe_log_groups(logGroupNamePrefix=KEPT_LOGS)
    assert f"{KEPT_LOGS}late-local" in {each["logGroupName"] for each in groups["logGroups"]}
    assert fleets.counts() == {"tell-local": 5}
    assert stacks.delete(TEAM) == "DELETE_COMPLETE"
    assert fleets.counts() == {}
    assert fleets.scaled() == set()
