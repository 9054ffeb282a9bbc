"""Isolated models with a key and a role of their own, and models that share an endpoint."""

import json
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest

from slipway.project import Project
from slipway.stacks.assembly import Selection
from slipway.stacks.guest_stack import GuestStack
from tests.support.plans import plan_for
from tests.support.projects import (
    ENVIRONMENTS,
    NETWORKED,
    PRODUCTION,
    model_config,
    write_project,
)
from tests.support.shared_endpoints import guest_text, models
from tests.synth.assemblies import Assembly, add_stacks, new_app, of_plans, synthesised

ISOLATED = """\
name: NAME
model: {family: bert, parameters: 109482240, layers: 12, hidden_size: 768, attention_heads: 12}
serving:
  container: neuron
  framework: neuron
  task: question-answering
  objective: throughput
  sequence_length: 128
artifacts:
  weights: {source: path, path: build/bert}
  compile: {instance: ml.c5.4xlarge}
  isolated: true
endpoint:
  instances: [ml.inf1.xlarge]
  instance_count: 2
  model_data_download_timeout_seconds: 600
  container_startup_health_check_timeout_seconds: 600
alarms:
  model_latency_p99_milliseconds: 600
"""
SHARED = ISOLATED.replace("  isolated: true\n", "")
# A key that S3 refuses, which a rule reports.
ELSEWHERE = ISOLATED.replace(
    "isolated: true",
    "isolated: true\n  key_arn: arn:aws:kms:us-east-2:210987654321:key/0a",
)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    models = {"own": ISOLATED, "shared": SHARED, "elsewhere": ELSEWHERE}
    root = write_project(
        tmp_path_factory.mktemp("project"),
        {name: text.replace("NAME", name) for name, text in models.items()},
        published=["own", "shared"],
        environments=f"project: search\n{ENVIRONMENTS}",
    )
    return Project(root)


@pytest.fixture(scope="module")
def assembly(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Assembly:
    directory = tmp_path_factory.mktemp("cdk.out")
    return synthesised(project, directory, environment="production")


def statements(assembly: Assembly, stack: str, role: str) -> dict[str, dict[str, Any]]:
    _, resource = assembly.named(stack, "AWS::IAM::Role", role)
    (policy,) = resource["Properties"]["Policies"]
    return {each["Sid"]: each for each in policy["PolicyDocument"]["Statement"]}


def test_the_key_is_deployed_before_the_model_and_after_the_foundation(assembly: Assembly):
    stacks = assembly.stacks()
    assert set(stacks) == {
        "foundation", "image-neuron", "artifacts-own", "own", "shared", "elsewhere",
    }  # fmt: skip
    assert stacks["artifacts-own"]["properties"]["stackName"] == (
        "search--artifacts-own-production"
    )
    names = assembly.resources("artifacts-own", "AWS::SSM::Parameter").values()
    prefix = "/slipway/search/production/models/own/"
    assert {each["Properties"]["Name"] for each in names} == {
        f"{prefix}artifact-key-arn", f"{prefix}compile-role-arn",
    }  # fmt: skip
    alias = assembly.only("artifacts-own", "AWS::KMS::Alias")["Properties"]["AliasName"]
    assert alias == "alias/slipway-search-production/own"
    assert "foundation" in stacks["artifacts-own"]["dependencies"]
    assert "artifacts-own" in stacks["own"]["dependencies"]
    assert "artifacts-own" not in stacks["shared"]["dependencies"]


def test_logs_that_have_the_environments_key_keep_it(tmp_path: Path):
    """CloudWatch Logs may use that key, and no model's."""
    environment = PRODUCTION.model_copy(update={"log_key": "artifact"})
    plan = plan_for(model_config(artifacts={"isolated": True}), environment)
    found = of_plans(tmp_path, {"tiny": plan})
    groups = found.resources("tiny", "AWS::Logs::LogGroup").values()
    assert {json.dumps(item["Properties"]["KmsKeyId"]) for item in groups} == {
        json.dumps({"Ref": "ArtifactKeyArn"})
    }
    assert statements(found, "tiny", "OwnExecutionRole")["DecryptArtifacts"]["Resource"] == {
        "Ref": "OwnArtifactKeyArn"
    }


def test_moving_makes_another_role_and_keeps_no_logical_id(assembly: Assembly):
    own, _ = assembly.named("own", "AWS::IAM::Role", "OwnExecutionRole")
    shared, _ = assembly.named("shared", "AWS::IAM::Role", "ExecutionRole")
    assert own not in assembly.template("shared")["Resources"]
    assert shared not in assembly.template("own")["Resources"]
    for stack, role in (("own", own), ("shared", shared)):
        model = assembly.only(stack, "AWS::SageMaker::Model")
        assert model["Properties"]["ExecutionRoleArn"] == {"Fn::GetAtt": [role, "Arn"]}


def test_a_key_that_is_refused_makes_no_stack(assembly: Assembly):
    (error,) = assembly.annotations("elsewhere", "error")
    assert "model_configs/elsewhere.yaml:13:3: artifacts.key_arn: the key is in us-east-2" in error


def test_before_anything_is_published_its_key_can_be_deployed(tmp_path: Path):
    root = write_project(tmp_path / "project", {"own": ISOLATED.replace("NAME", "own")})
    found = synthesised(Project(root), tmp_path / "cdk.out", environment="production")
    assert "the release was never published" in found.annotations("own", "error")[0]
    assert list(found.resources("artifacts-own", "AWS::KMS::Key")) != []


def test_leaving_the_key_out_is_mentioned(project: Project, tmp_path: Path):
    app = new_app(tmp_path, **{"aws:cdk:bundling-stacks": ["own"]})
    add_stacks(app, project, Selection(environment="production", models=("own",)))
    app.synth()
    told = Assembly(tmp_path).annotations("own", "info")
    assert (
        "Deployed without its key (--exclusively). Where that is not there yet, run "
        "`cdk deploy artifacts-own -c env=production` first."
    ) in told


def test_other_rights_are_another_policy(tmp_path: Path) -> None:
    plans = {}
    for index, group in enumerate(("sg-0a1b2c3d", "sg-4e5f6a7b", "sg-0a1b2c3d")):
        vpc = {"subnet_ids": ["subnet-0a1b2c3d"], "security_group_ids": [group]}
        plans[f"model{index}"] = plan_for(model_config(endpoint={"vpc": vpc}), NETWORKED)
    assembly = of_plans(tmp_path, plans)
    found = [assembly.resources(name, "AWS::IAM::Policy") for name in plans]
    (first,), (second,), (again,) = found
    assert first != second
    assert first == again
    # The role may hold both at a time.
    names = [each["Properties"]["PolicyName"] for (each,) in (f.values() for f in found)]
    assert names[0] != names[1]
    model = assembly.only("model0", "AWS::SageMaker::Model")
    assert model["DependsOn"] == [first]


# Models that share an endpoint: the order in which their stacks come and go


@pytest.fixture(scope="module")
def sharing(tmp_path_factory: pytest.TempPathFactory) -> Project:
    root = tmp_path_factory.mktemp("shared")
    return Project(write_project(root, models(), published=models()))


def stacks_of(app: cdk.App) -> dict[str, cdk.Stack]:
    return {each.node.id: each for each in app.node.children if isinstance(each, cdk.Stack)}


def test_a_selection_has_the_host_and_its_guests(sharing: Project, tmp_path: Path) -> None:
    for selected in ("search", "titles"):
        app = new_app(tmp_path)
        add_stacks(app, sharing, Selection(models=(selected,)))
        stacks = stacks_of(app)
        assert list(stacks) == ["foundation", "search", "tags", "titles"]
        # `cdk deploy titles` deploys the host first; `cdk destroy search` destroys guests first.
        for name in ("tags", "titles"):
            assert isinstance(stacks[name], GuestStack)
            assert stacks["search"] in stacks[name].dependencies
        assert stacks["search"].dependencies == [stacks["foundation"]]
    app = new_app(tmp_path)
    add_stacks(app, sharing, Selection(models=("alone",)))
    assert list(stacks_of(app)) == ["foundation", "alone"]


def test_a_guest_with_problems_goes_before_its_host(tmp_path: Path) -> None:
    """Its copies may run. `cdk destroy search` would otherwise leave them."""
    texts = dict(models())
    texts["titles"] = texts["titles"].replace("max_copies: 6", "max_copies: six")
    project = Project(write_project(tmp_path, texts, published=["search", "tags"]))
    app = new_app(tmp_path / "out")
    add_stacks(app, project, Selection(models=("search",)))
    stacks = stacks_of(app)
    assert list(stacks) == ["foundation", "search", "tags", "titles"]
    assert not isinstance(stacks["titles"], GuestStack)
    assert stacks["search"] in stacks["titles"].dependencies


def test_models_that_name_each_other_are_reported(tmp_path: Path) -> None:
    texts = {"one": guest_text("one", host="two"), "two": guest_text("two", host="one")}
    project = Project(write_project(tmp_path, texts, published=texts))
    app = new_app(tmp_path / "out")
    add_stacks(app, project, Selection(models=("one",)))
    assert list(stacks_of(app)) == ["foundation", "one", "two"]
    app.synth()


def test_the_models_of_guests_have_the_role_of_their_host(sharing: Project, tmp_path: Path) -> None:
    assembly = synthesised(sharing, tmp_path, models=("search",))
    role, _ = assembly.named("search", "AWS::IAM::Role", "ExecutionRole")
    written = assembly.only("search", "AWS::SSM::Parameter")["Properties"]
    assert written["Value"] == {"Fn::GetAtt": [role, "Arn"]}
    for name in ("tags", "titles"):
        assert assembly.resources(name, "AWS::IAM::Role") == {}
        model = assembly.only(name, "AWS::SageMaker::Model")["Properties"]
        read = assembly.template(name)["Parameters"][model["ExecutionRoleArn"]["Ref"]]
        assert (
            read["Default"] == written["Name"] == "/slipway/local/models/search/execution-role-arn"
        )
