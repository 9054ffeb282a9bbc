"""The stack of our LMI image: what it builds, for whom, and what the scanners say of it."""

from pathlib import Path
from typing import Any

import pytest

from slipway.facts.images import image
from slipway.image_sources import image_digest
from slipway.planning.families.lmi.image import image_bases
from slipway.project import Project
from stacks.assembly import Selection, add_stacks
from stacks.image_stack import images_to_build
from tests.support.linting import lint
from tests.support.projects import ENVIRONMENTS, PRODUCTION, config_text, write_project
from tests.synth.assemblies import Assembly, new_app
from tests.synth.scanners import nag, validation_findings

STACK = "image-lmi"
REPOSITORY = "210987654321.dkr.ecr.eu-west-1.amazonaws.com/slipway/lmi"
CONFIG = """\
name: NAME
description: GPT-J with our handler
model:
  family: gptj
  parameters: 6050882784
  layers: 28
  hidden_size: 4096
  attention_heads: 16
serving:
  container: lmi
  framework: djl-deepspeed
  version: 0.23.0
  image: built
  dtype: fp16
artifacts:
  weights:
    source: s3
    uri: s3://my-models/gpt-j/
  size_gb: 12
endpoint:
  instances: [ml.g5.2xlarge]
  container_startup_health_check_timeout_seconds: 1800
  network_isolation: false
alarms:
  model_latency_p99_milliseconds: 2000
"""
DEEPSPEED = ("djl-deepspeed", "0.23.0")
FASTERTRANSFORMER = ("djl-fastertransformer", "0.24.0")


def config(name: str, *edits: tuple[str, str]) -> str:
    text = CONFIG.replace("NAME", name)
    for old, new in edits:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


MODELS = {
    "gptj": config("gptj"),
    "gptj-again": config("gptj-again"),
    "managed": config("managed", ("image: built", "image: managed")),
    "fresh": config(
        "fresh",
        ("framework: djl-deepspeed", "framework: djl-fastertransformer"),
        ("version: 0.23.0", "version: 0.24.0"),
    ),
    "too-old": config("too-old", ("version: 0.23.0", "version: 0.20.0")),
    "unknown": config("unknown", ("version: 0.23.0", "version: 0.1.0")),
    "broken": config("broken", ("dtype: fp16", "dtyp: fp16")),
    "tensorrt": config_text("tensorrt"),
}


def make_project(root: Path, *names: str) -> Project:
    root.mkdir(parents=True, exist_ok=True)
    models = {name: MODELS[name] for name in names or MODELS}
    published = {"gptj", "gptj-again", "managed"} & set(models)
    write_project(root, models, published=published, environments=ENVIRONMENTS)
    return Project(root)


def synthesise(project: Project, outdir: Path, *models: str, **keywords: Any) -> Assembly:
    app = new_app(outdir)
    chosen = {"environment": "production", "models": models or ("*",), **keywords}
    add_stacks(app, project, Selection(**chosen))
    app.synth()
    return Assembly(outdir)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return make_project(tmp_path_factory.mktemp("project"))


@pytest.fixture(scope="module")
def assembly(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Assembly:
    return synthesise(project, tmp_path_factory.mktemp("cdk.out"), "gptj")


def requests(assembly: Assembly) -> list[tuple[str, str, str]]:
    found = assembly.resources(STACK, "Custom::SlipwayImage").values()
    return [
        tuple(resource["Properties"][name] for name in ("ImageUri", "BaseImage", "Target"))
        for resource in found
    ]


def base(framework: str, version: str) -> Any:
    return image(framework, version, "eu-west-1")


def test_an_image_is_built_for_each_base_that_a_config_of_the_project_names(
    assembly: Assembly, project: Project
):
    """Once, for however many configs; and for one that is not selected too."""
    digest = image_digest(project.root, "lmi")
    assert requests(assembly) == [
        (f"{REPOSITORY}:{facts.tag}-{digest}", facts.uri, "serving")
        for facts in (base(*DEEPSPEED), base(*FASTERTRANSFORMER))
    ]
    assert base(*DEEPSPEED).tag == "0.23.0-deepspeed0.9.5-cu118"


def test_a_models_stack_waits_for_its_image_and_runs_it(assembly: Assembly, project: Project):
    assert set(assembly.stacks()) == {"foundation", "gptj", STACK}
    assert STACK in assembly.stacks()["gptj"]["dependencies"]
    model = assembly.only("gptj", "AWS::SageMaker::Model")["Properties"]["PrimaryContainer"]
    assert model["Image"] == requests(assembly)[0][0]
    assert model["Image"] == project.plan("gptj", PRODUCTION).image.uri


def test_the_selection_does_not_change_the_stack(
    assembly: Assembly, project: Project, tmp_path: Path
):
    for names in (("gptj-again",), ("gptj", "fresh"), ()):
        found = synthesise(project, tmp_path / f"{len(names)}", *names)
        assert found.template(STACK) == assembly.template(STACK)


def test_one_that_is_not_published_has_its_image_built_first(project: Project, tmp_path: Path):
    found = synthesise(project, tmp_path, "fresh")
    assert "was never published" in found.annotations("fresh", "error")[0]
    assert set(found.stacks()) == {"foundation", "fresh", STACK}


def test_awss_image_needs_no_stack(project: Project, tmp_path: Path):
    found = synthesise(project, tmp_path, "managed")
    assert set(found.stacks()) == {"foundation", "managed"}
    model = found.only("managed", "AWS::SageMaker::Model")["Properties"]["PrimaryContainer"]
    assert model["Image"] == base(*DEEPSPEED).uri


def test_other_containers_builds_do_not_come_with_it(project: Project, tmp_path: Path):
    found = synthesise(project, tmp_path, "tensorrt")
    assert STACK not in found.stacks()


def test_what_is_no_base_is_not_built_and_its_model_says_why(tmp_path: Path):
    project = make_project(tmp_path / "project", "too-old", "unknown", "broken")
    found = synthesise(project, tmp_path / "out")
    assert set(found.stacks()) == {"foundation", "too-old", "unknown", "broken"}
    assert (
        "Slipway has no handler for djl-deepspeed 0.20.0"
        in (found.annotations("too-old", "error")[0])
    )
    assert "there is no image of djl-deepspeed 0.1.0" in found.annotations("unknown", "error")[0]
    assert "dtyp" in found.annotations("broken", "error")[0]


def test_a_missing_source_stops_only_who_needs_it(tmp_path: Path):
    project = make_project(tmp_path / "project", "gptj", "managed")
    (project.root / "containers" / "lmi" / "Dockerfile").unlink()
    found = synthesise(project, tmp_path / "out")
    assert set(found.stacks()) == {"foundation", "gptj", "managed"}
    assert "containers/lmi/Dockerfile is missing" in found.annotations("gptj", "error")[0]
    assert found.annotations("managed", "error") == []


def test_the_embedded_aws_builds_nothing(project: Project, tmp_path: Path):
    found = synthesise(project, tmp_path, "gptj", environment="local", allow_unpublished=True)
    assert set(found.stacks()) == {"foundation", "gptj"}


def test_a_region_without_the_base_has_no_image_of_it():
    """AWS publishes FasterTransformer in fewer regions than there are."""
    away = PRODUCTION.model_copy(update={"region": "us-gov-west-1"})
    assert image(*FASTERTRANSFORMER, "us-gov-west-1").uri is None
    bases = image_bases(away, [DEEPSPEED, FASTERTRANSFORMER])
    built = images_to_build(away, "lmi", "0", bases)
    expected = image(*DEEPSPEED, "us-gov-west-1").uri
    assert [each.base_image for each in built] == ([expected] if expected else [])


def test_the_build_may_pull_the_bases(assembly: Assembly):
    policies = [
        statement
        for role in assembly.resources(STACK, "AWS::IAM::Role").values()
        for policy in role["Properties"]["Policies"]
        for statement in policy["PolicyDocument"]["Statement"]
    ]
    (pull,) = (statement for statement in policies if statement["Sid"] == "PullBases")
    account = base(*DEEPSPEED).account
    assert pull["Resource"] == f"arn:aws:ecr:eu-west-1:{account}:repository/djl-inference"


def test_the_dockerfile_is_the_containers_own(assembly: Assembly):
    build = assembly.only(STACK, "AWS::CodeBuild::Project")["Properties"]
    assert build["Environment"]["EnvironmentVariables"] == [
        {"Name": "DOCKERFILE", "Type": "PLAINTEXT", "Value": "containers/lmi/Dockerfile"}
    ]
    repository = assembly.only(STACK, "AWS::ECR::Repository")["Properties"]
    assert repository["RepositoryName"] == "slipway/lmi"


def test_cfn_lint_finds_nothing(assembly: Assembly):
    path = assembly.template_file(STACK)
    assert [str(match) for match in lint([path])[path]] == []


def test_the_cdks_own_validation_finds_nothing(project: Project, tmp_path: Path):
    # It reports where something was acknowledged, as the stack of a broken model is.
    found = synthesise(project, tmp_path, "gptj", "broken")
    assert STACK in found.stacks()
    assert validation_findings(tmp_path) == []


def test_cdk_nag_finds_only_what_is_acknowledged_with_a_reason(project: Project, tmp_path: Path):
    app = new_app(tmp_path)
    add_stacks(app, project, Selection(environment="production", models=("gptj",)))
    report = nag(app, tmp_path)
    assert report["violations"] == []
    excused = {
        (construct["constructPath"], item["ruleName"])
        for item in report["suppressedViolations"]
        for construct in item["violatingConstructs"]
        if construct["constructPath"].startswith(STACK)
    }
    assert excused == {
        (f"{STACK}/Build/BuildRole/Resource", "AwsSolutions-IAM5[Resource::*]"),
        (f"{STACK}/Build/Project", "AwsSolutions-CB4"),
    }
