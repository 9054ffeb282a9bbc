"""Cases: a config, and exactly the template, the plan or the report that comes of it.

`cases/NAME.yaml` -> `templates/NAME.json`, and for some -> `plans/NAME.txt`;
`cases/error_NAME.yaml` -> `errors/error_NAME.txt`. Comments at the head of a case choose its
environment (`# environment: production`), its lock (`# lock: none`), and the case whose copies run
on its endpoint (`# guests: guest`). A template is golden if it shows a property that no other one
shows. A golden report has problems of several rules, or one that no other test words.
`pytest tests/golden --update-golden` writes the results anew.
"""

import collections
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cfnlint.rules import Match

from slipway.cli.plan_text import describe_plan
from slipway.errors import UserError
from slipway.planning.resources import resources_of
from slipway.stacks.artifacts_stack import ArtifactsStack
from slipway.stacks.assembly import plan_stack
from slipway.stacks.constructs.foundation_guard import FOUNDATION_VERSION
from slipway.stacks.foundation_stack import FoundationStack
from tests.support.golden_cases import (
    BAD,
    GOLDEN,
    GOOD,
    environment_of,
    load_case,
    make_plan,
    plan_content,
)
from tests.support.linting import lint
from tests.support.projects import DIGEST, NETWORKED, PRODUCTION
from tests.synth.assemblies import new_app, target_of

ISOLATED = [case for case in GOOD if case.startswith("isolated")]
FOUNDATIONS = {"foundation": PRODUCTION, "foundation-network": NETWORKED}
STACKS = [*GOOD, *(f"artifacts-{case}" for case in ISOLATED), *FOUNDATIONS]
# Their templates show nothing that another one does not show.
WITHOUT_TEMPLATE = {
    "environment-section", "instance-pool", "isolated-lmi", "lmi-own-script", "lmi-partition",
    "neuron-latency", "scale-to-zero-schedules", "shadow", "tensorrt-v100", "weighted-variants",
}  # fmt: skip
TEMPLATES = [name for name in STACKS if name not in WITHOUT_TEMPLATE]
# Each family, and each section that changes what a plan says.
PLANS = (
    "async", "custom-image", "data-capture", "guest", "instance-pool", "lmi-partition",
    "neuron-latency", "pool-of-two-engines", "private-registry", "scale-to-zero-vpc",
    "scale-to-zero-warm", "schedules", "serverless", "shadow", "tensorrt-v100", "triton-tensorrt",
    "variants-of-two-models",
)  # fmt: skip
PLAN_AS_JSON = "lmi-partition"


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compares a text with a golden file, or writes it."""

    def compare(name: str, text: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert text == path.read_text("utf-8")

    return compare


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Every good case's template and the foundations', from one synthesis."""
    output = tmp_path_factory.mktemp("cdk.out")
    # The checks of the templates are tests of their own, and slow.
    app = new_app(output)
    for case in GOOD:
        plan = make_plan(case, tmp_path_factory.mktemp(case))
        target = target_of(plan.environment)
        plan_stack(app, case, plan=plan, env=target)
        if case in ISOLATED:
            ArtifactsStack(
                app,
                plan.artifact_place.stack_id,
                config=load_case(case, tmp_path_factory.mktemp(case)).config,
                environment=environment_of(case),
                env=target,
            )
    for name, environment in FOUNDATIONS.items():
        FoundationStack(app, name, environment=environment, env=target_of(environment))
    app.synth()
    return {name: output / f"{name}.template.json" for name in STACKS}


@pytest.fixture(scope="module")
def findings(templates: dict[str, Path]) -> dict[Path, list[Match]]:
    return lint(templates[case] for case in STACKS)


@pytest.mark.parametrize("case", PLANS)
def test_plan(case: str, tmp_path: Path, golden: Callable[[str, str], None]):
    golden(f"plans/{case}.txt", describe_plan(make_plan(case, tmp_path)) + "\n")


def test_plan_as_json(golden: Callable[[str, str], None]):
    content = plan_content(PLAN_AS_JSON)
    golden(f"plans/{PLAN_AS_JSON}.json", json.dumps(content, indent=2) + "\n")


@pytest.mark.parametrize("case", TEMPLATES)
def test_template(case: str, templates: dict[str, Path], golden: Callable[[str, str], None]):
    golden(f"templates/{case}.json", templates[case].read_text("utf-8") + "\n")


# What is found by its name, or writes where its name says. Whatever else has a name could not be
# replaced, because CloudFormation makes the new resource before it deletes the old one.
NAMED = {
    ("AWS::ApplicationAutoScaling::ScalingPolicy", "PolicyName"),
    ("AWS::CloudWatch::Dashboard", "DashboardName"),
    ("AWS::IAM::Policy", "PolicyName"),
    ("AWS::KMS::Alias", "AliasName"),
    ("AWS::Logs::LogGroup", "LogGroupName"),
    ("AWS::S3::Bucket", "BucketName"),
    ("AWS::SSM::Parameter", "Name"),
    ("AWS::SageMaker::Endpoint", "EndpointName"),
    ("AWS::SageMaker::InferenceComponent", "InferenceComponentName"),
}
# The names of others.
TOLD = {"MetricName", "ServiceName", "VariantName"}
UNTAGGED = {
    "AWS::ApplicationAutoScaling::ScalingPolicy", "AWS::IAM::Policy", "AWS::KMS::Alias",
    "AWS::S3::BucketPolicy", "AWS::SNS::Subscription", "AWS::SNS::TopicPolicy",
    "Custom::SlipwayFoundation", "Custom::SlipwayScaling",
}  # fmt: skip


@pytest.mark.parametrize("case", STACKS)
def test_a_template_says_nothing_that_it_must_not(case: str, templates: dict[str, Path]):
    text = templates[case].read_text("utf-8")
    # No stack is tied to another one, which could then not be changed alone.
    assert '"Export"' not in text
    assert "Fn::ImportValue" not in text
    for resource in json.loads(text)["Resources"].values():
        kind, properties = resource["Type"], resource.get("Properties", {})
        for key, value in properties.items():
            if key.endswith("Name") and isinstance(value, str) and key not in TOLD:
                assert (kind, key) in NAMED or key == "EndpointName"
        # Another artifact changes no rights.
        assert kind not in ("AWS::IAM::Role", "AWS::IAM::Policy") or DIGEST not in str(properties)
        assert kind in UNTAGGED or "slipway:environment" in str(properties["Tags"])


def resources(template: Path, kind: str) -> dict[str, dict[str, Any]]:
    found = json.loads(template.read_text("utf-8"))["Resources"]
    return {name: resource for name, resource in found.items() if resource["Type"] == kind}


@pytest.mark.parametrize("case", FOUNDATIONS)
def test_buckets_outlive_the_foundation_and_keep_what_is_published(
    case: str, templates: dict[str, Path]
):
    buckets = resources(templates[case], "AWS::S3::Bucket")
    assert len(buckets) == 2
    for bucket in buckets.values():
        # A creation that fails must not leave a name behind that the next one needs.
        assert bucket["DeletionPolicy"] == "RetainExceptOnCreate"
        assert bucket["UpdateReplacePolicy"] == "Retain"
        closed = bucket["Properties"]["PublicAccessBlockConfiguration"]
        assert set(closed.values()) == {True}
    policies = resources(templates[case], "AWS::S3::BucketPolicy")
    assert len(policies) == 2
    for policy in policies.values():
        statements = policy["Properties"]["PolicyDocument"]["Statement"]
        denied = [each["Condition"] for each in statements if each["Effect"] == "Deny"]
        assert {"Bool": {"aws:SecureTransport": "false"}} in denied
    name = FOUNDATIONS[case].artifact_bucket
    (artifacts,) = (b for b in buckets.values() if b["Properties"]["BucketName"] == name)
    expiring = [
        rule["Prefix"]
        for rule in artifacts["Properties"]["LifecycleConfiguration"]["Rules"]
        if {"ExpirationInDays", "ExpirationDate", "Transitions"} & rule.keys()
    ]
    # A job's output was copied into an artifact; `recipes/` and `artifacts/` stay.
    assert {"compile/", "incoming/"} <= set(expiring) <= {"compile/", "incoming/", "captured/"}


@pytest.mark.parametrize("case", GOOD)
def test_an_update_of_the_endpoint_is_surrounded(case: str, templates: dict[str, Path]):
    """What fails before the endpoint fails before anything is deregistered."""
    steps = resources(templates[case], "Custom::SlipwayScaling")
    endpoints = resources(templates[case], "AWS::SageMaker::Endpoint")
    of_step = {each["Properties"]["Step"]: name for name, each in steps.items()}
    if "Before" not in of_step:
        return
    ((endpoint_id, endpoint),) = endpoints.items()
    ((config_id, config),) = resources(templates[case], "AWS::SageMaker::EndpointConfig").items()
    before = steps[of_step["Before"]]
    assert of_step["Before"] in endpoint["DependsOn"]
    assert steps[of_step["After"]]["DependsOn"] == [endpoint_id]
    assert before["Properties"]["ConfigName"] == {"Fn::GetAtt": [config_id, "EndpointConfigName"]}
    # Instances that copies run on have no target of scaling.
    if "Undo" in of_step:
        assert config["DependsOn"] == [of_step["Undo"]]
        targets = resources(templates[case], "AWS::ApplicationAutoScaling::ScalableTarget")
        assert all(of_step["After"] in target["DependsOn"] for target in targets.values())


@pytest.mark.parametrize("case", GOOD)
def test_the_plan_counts_the_resources_of_the_template(
    case: str, templates: dict[str, Path], tmp_path: Path
):
    resources = json.loads(templates[case].read_text("utf-8"))["Resources"].values()
    found = collections.Counter(resource["Type"] for resource in resources)
    assert resources_of(make_plan(case, tmp_path)) == found


def test_the_foundations_version_is_that_of_its_template(
    templates: dict[str, Path], golden: Callable[[str, str], None]
):
    """Where this fails, raise FOUNDATION_VERSION if a release or a branch has the version already.

    The guard of the foundation compares versions alone, and takes two templates of one for equal.
    """
    digest = hashlib.sha256(templates["foundation"].read_bytes()).hexdigest()
    content = {"version": FOUNDATION_VERSION, "template": digest}
    golden("foundation-version.json", json.dumps(content, indent=2) + "\n")


@pytest.mark.size("all")
@pytest.mark.parametrize("case", STACKS)
def test_cfn_lint_finds_nothing(
    case: str, templates: dict[str, Path], findings: dict[Path, list[Match]]
):
    assert [str(match) for match in findings[templates[case]]] == []


@pytest.mark.parametrize("case", BAD)
def test_report(case: str, tmp_path: Path, golden: Callable[[str, str], None]):
    with pytest.raises(UserError) as caught:
        make_plan(case, tmp_path)
    golden(f"errors/{case}.txt", f"{caught.value}\n")


def test_every_golden_file_has_its_case():
    found = {
        path.relative_to(GOLDEN).as_posix()
        for folder in ("plans", "templates", "errors")
        for path in (GOLDEN / folder).iterdir()
    }
    assert found == {
        f"plans/{PLAN_AS_JSON}.json",
        *(f"plans/{case}.txt" for case in PLANS),
        *(f"templates/{case}.json" for case in TEMPLATES),
        *(f"errors/{case}.txt" for case in BAD),
    }
