"""The endpoint that is written by hand is the one that Slipway makes, and the page counts both."""

import json
import re
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest

from samples.hand_written.stack import NAME, EndpointStack
from slipway.planning.plan import DeploymentPlan
from slipway.stacks.assembly import plan_stack
from tests.support.golden_cases import ENVIRONMENTS, load, plan_loaded
from tests.support.projects import PRODUCTION

pytestmark = pytest.mark.size("all")

ROOT = Path(__file__).parents[2]
CONFIG = ROOT / "samples" / "hand_written" / "gpt2-autocomplete.yaml"
STACK = CONFIG.with_name("stack.py")
TYPES = {
    "AWS::ApplicationAutoScaling::ScalableTarget",
    "AWS::ApplicationAutoScaling::ScalingPolicy",
    "AWS::CloudWatch::Alarm",
    "AWS::SageMaker::Endpoint",
    "AWS::SageMaker::EndpointConfig",
    "AWS::SageMaker::Model",
}
# What differs, and changes nothing that serves: texts, tags, and a name that is free to choose.
FREE = {"Tags", "AlarmDescription", "PolicyName"}


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> DeploymentPlan:
    root = tmp_path_factory.mktemp("project")
    loaded = load(CONFIG.read_bytes(), CONFIG.stem, root, PRODUCTION, tuple(ENVIRONMENTS))
    return plan_loaded(loaded, PRODUCTION)


@pytest.fixture(scope="module")
def templates(
    plan: DeploymentPlan, tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Slipway's resources and those by hand, from one synthesis."""
    output = tmp_path_factory.mktemp("cdk.out")
    app = cdk.App(
        outdir=str(output),
        context=json.loads((ROOT / "cdk.json").read_text("utf-8"))["context"],
        analytics_reporting=False,
        builtin_cloud_formation_validation=False,
    )
    target = cdk.Environment(account=PRODUCTION.account, region=PRODUCTION.region)
    plan_stack(app, "slipway", plan=plan, env=target)
    assert plan.artifact is not None
    EndpointStack(
        app,
        "by-hand",
        bucket=plan.artifact.bucket,
        digest=plan.artifact.digest,
        image_tag=plan.image.uri.rpartition(":")[2],
        env=target,
    )
    app.synth()

    def resources(name: str) -> dict[str, Any]:
        text = (output / f"{name}.template.json").read_text("utf-8")
        found: dict[str, Any] = json.loads(text)["Resources"]
        return found

    return resources("slipway"), resources("by-hand")


def test_it_has_the_properties_of_slipways_template(
    templates: tuple[dict[str, Any], dict[str, Any]],
) -> None:
    ours, by_hand = (
        sorted(
            json.dumps([each["Type"], anonymous(each["Properties"], resources)], sort_keys=True)
            for each in resources.values()
            if each["Type"] in TYPES
        )
        for resources in templates
    )
    assert by_hand == ours


def test_its_role_has_the_rights_of_slipways(
    templates: tuple[dict[str, Any], dict[str, Any]],
) -> None:
    ours, by_hand = (rights(resources) for resources in templates)
    assert by_hand == ours


def test_its_log_group_is_kept_as_long(templates: tuple[dict[str, Any], dict[str, Any]]) -> None:
    ours, by_hand = (
        [
            each["Properties"]["RetentionInDays"]
            for each in resources.values()
            if each["Properties"].get("LogGroupName") == f"/aws/sagemaker/Endpoints/{NAME}"
        ]
        for resources in templates
    )
    assert by_hand == ours == [30]


def test_the_page_counts_their_lines() -> None:
    page = " ".join((ROOT / "docs" / "comparison.md").read_text("utf-8").split())
    found = re.search(r"\[(\d+) lines of YAML\].*?\[(\d+) lines of Python\]", page)
    assert found
    assert [int(count) for count in found.groups()] == [lines_of(CONFIG), lines_of(STACK)]


def lines_of(path: Path) -> int:
    """Counts the lines of a file that are neither empty nor a docstring."""
    text = re.sub(r'^ *""".*?"""$', "", path.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    return sum(1 for line in text.splitlines() if line.strip())


def anonymous(value: Any, resources: dict[str, Any]) -> Any:
    """Returns properties without what is free to choose, and with types in place of logical ids."""
    match value:
        case {"Ref": name} if name in resources:
            return {"Ref": resources[name]["Type"]}
        case {"Fn::GetAtt": [name, attribute]}:
            return {"Fn::GetAtt": [resources[name]["Type"], attribute]}
        case dict():
            return {
                key: anonymous(each, resources) for key, each in value.items() if key not in FREE
            }
        case list():
            return [anonymous(each, resources) for each in value]
        case _:
            return value


def rights(resources: dict[str, Any]) -> tuple[str, list[str]]:
    """Returns who may take the role of the endpoint's container, and what it may then do."""
    roles = {
        name: each["Properties"]
        for name, each in resources.items()
        if each["Type"] == "AWS::IAM::Role"
        and "sagemaker.amazonaws.com" in json.dumps(each["Properties"]["AssumeRolePolicyDocument"])
    }
    ((name, role),) = roles.items()
    documents = [each["PolicyDocument"] for each in role["Policies"]]
    documents += [
        each["Properties"]["PolicyDocument"]
        for each in resources.values()
        if each["Type"] == "AWS::IAM::Policy" and {"Ref": name} in each["Properties"]["Roles"]
    ]
    statements = [
        json.dumps({key: part for key, part in each.items() if key != "Sid"}, sort_keys=True)
        for document in documents
        for each in document["Statement"]
    ]
    trust = json.dumps(role["AssumeRolePolicyDocument"], sort_keys=True)
    return trust, sorted(statements)
