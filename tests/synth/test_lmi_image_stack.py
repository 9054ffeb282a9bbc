"""The stack of our LMI image: which bases it is built on, and for whom."""

from pathlib import Path
from typing import Any

import pytest

from slipway.facts.images import image
from slipway.image_sources import image_digest
from slipway.planning.families.lmi.handlers import image_bases
from slipway.project import Project
from slipway.stacks.image_stack import images_to_build
from tests.support.projects import PRODUCTION
from tests.synth.assemblies import Assembly
from tests.synth.image_stacks import edited, make_project, pulled, requests, synthesise

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
    return edited(CONFIG, ("NAME", name), *edits)


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
}


PUBLISHED = ("gptj", "gptj-again", "managed")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return make_project(tmp_path_factory.mktemp("project"), MODELS, PUBLISHED)


@pytest.fixture(scope="module")
def assembly(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Assembly:
    return synthesise(project, tmp_path_factory.mktemp("cdk.out"), "gptj")


def base(framework: str, version: str) -> Any:
    return image(framework, version, "eu-west-1")


def test_an_image_is_built_for_each_base_that_a_config_of_the_project_names(
    assembly: Assembly, project: Project
):
    digest = image_digest(project.root, "lmi")
    assert requests(assembly, STACK) == [
        (f"{REPOSITORY}:{facts.tag}-{digest}", facts.uri, "serving")
        for facts in (base(*DEEPSPEED), base(*FASTERTRANSFORMER))
    ]
    assert base(*DEEPSPEED).tag == "0.23.0-deepspeed0.9.5-cu118"


def test_a_models_stack_waits_for_its_image_and_runs_it(assembly: Assembly, project: Project):
    assert set(assembly.stacks()) == {"foundation", "gptj", STACK}
    assert STACK in assembly.stacks()["gptj"]["dependencies"]
    model = assembly.only("gptj", "AWS::SageMaker::Model")["Properties"]["PrimaryContainer"]
    assert model["Image"] == requests(assembly, STACK)[0][0]
    assert model["Image"] == project.plan("gptj", PRODUCTION).image.uri


def test_awss_image_needs_no_stack(project: Project, tmp_path: Path):
    found = synthesise(project, tmp_path, "managed")
    assert set(found.stacks()) == {"foundation", "managed"}
    model = found.only("managed", "AWS::SageMaker::Model")["Properties"]["PrimaryContainer"]
    assert model["Image"] == base(*DEEPSPEED).uri


def test_what_is_no_base_is_not_built_and_its_model_says_why(tmp_path: Path):
    models = {name: MODELS[name] for name in ("too-old", "unknown", "broken")}
    project = make_project(tmp_path / "project", models)
    found = synthesise(project, tmp_path / "out")
    assert set(found.stacks()) == {"foundation", "too-old", "unknown", "broken"}
    assert (
        "Slipway has no handler for djl-deepspeed 0.20.0"
        in (found.annotations("too-old", "error")[0])
    )
    assert "there is no image of djl-deepspeed 0.1.0" in found.annotations("unknown", "error")[0]
    assert "dtyp" in found.annotations("broken", "error")[0]


def test_a_region_without_the_base_has_no_image_of_it():
    """AWS publishes FasterTransformer in fewer regions than there are."""
    away = PRODUCTION.model_copy(update={"region": "us-gov-west-1"})
    assert image(*FASTERTRANSFORMER, "us-gov-west-1").uri is None
    bases = image_bases(away, [DEEPSPEED, FASTERTRANSFORMER])
    built = images_to_build(away, "lmi", "0", bases)
    expected = image(*DEEPSPEED, "us-gov-west-1").uri
    assert [each.base_image for each in built] == ([expected] if expected else [])


def test_the_build_may_pull_the_bases(assembly: Assembly):
    account = base(*DEEPSPEED).account
    assert pulled(assembly, STACK) == [f"arn:aws:ecr:eu-west-1:{account}:repository/djl-inference"]


def test_the_dockerfile_is_the_containers_own(assembly: Assembly):
    build = assembly.only(STACK, "AWS::CodeBuild::Project")["Properties"]
    assert build["Environment"]["EnvironmentVariables"] == [
        {"Name": "DOCKERFILE", "Type": "PLAINTEXT", "Value": "containers/lmi/Dockerfile"}
    ]
    repository = assembly.only(STACK, "AWS::ECR::Repository")["Properties"]
    assert repository["RepositoryName"] == "slipway/lmi"
