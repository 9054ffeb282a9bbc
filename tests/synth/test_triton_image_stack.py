"""The stack of Slipway's Triton image: which bases it is built on, and for whom."""

from pathlib import Path

import pytest

from slipway.facts.images import image
from slipway.facts.triton.releases import TRITON
from slipway.image_sources import image_digest
from slipway.planning.images import compiler_image
from slipway.project import Project
from tests.support.golden_cases import CASES
from tests.support.projects import PRODUCTION
from tests.synth.assemblies import Assembly
from tests.synth.image_stacks import edited, make_project, pulled, requests, synthesise

STACK = "image-triton"
REPOSITORY = "210987654321.dkr.ecr.eu-west-1.amazonaws.com/slipway/triton"
CONFIG = (CASES / "triton-tensorrt.yaml").read_text("utf-8")


def config(name: str, *edits: tuple[str, str]) -> str:
    return edited(CONFIG, ("name: triton-tensorrt", f"name: {name}"), *edits)


MODELS = {
    "newest": config("newest"),
    "again": config("again"),
    "volta": config(
        "volta", ('"26.05"', '"24.09"'), ("ml.g4dn.xlarge", "ml.p3.2xlarge"), ("sm75", "sm70")
    ),
    "too-old": config("too-old", ('"26.05"', '"24.05"')),
    "own": config(
        "own",
        ('version: "26.05"', 'version: "25.09"\n  repository: triton/own'),
        ("  max_input_tokens: 32\n  max_new_tokens: 32\n", ""),
    ),
}


PUBLISHED = ("newest", "again", "volta")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return make_project(tmp_path_factory.mktemp("project"), MODELS, PUBLISHED)


@pytest.fixture(scope="module")
def assembly(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Assembly:
    return synthesise(project, tmp_path_factory.mktemp("cdk.out"), "newest")


def test_both_images_are_built_on_each_base_that_a_config_names(
    assembly: Assembly, project: Project
):
    digest = image_digest(project.root, "triton")
    assert requests(assembly, STACK) == [
        (
            f"{REPOSITORY}:triton{version}-{digest}{suffix}",
            image(TRITON, version, "eu-west-1").uri,
            target,
        )
        for version in ("24.09", "26.05")
        for suffix, target in (("", "serving"), ("-compiler", "compiler"))
    ]


def test_a_models_stack_waits_for_its_image_and_runs_it(assembly: Assembly, project: Project):
    assert set(assembly.stacks()) == {"foundation", "newest", STACK}
    assert STACK in assembly.stacks()["newest"]["dependencies"]
    model = assembly.only("newest", "AWS::SageMaker::Model")["Properties"]["PrimaryContainer"]
    built = [uri for uri, _, _ in requests(assembly, STACK)]
    assert model["Image"] in built
    plan = project.plan("newest", PRODUCTION)
    assert {plan.image.uri, compiler_image(plan.image).uri} <= set(built)


def test_a_repository_of_the_users_own_needs_no_image(project: Project, tmp_path: Path):
    found = synthesise(project, tmp_path, "own", allow_unpublished=True)
    assert STACK not in found.stacks()


def test_a_release_that_is_no_base_is_not_built_and_its_model_says_why(tmp_path: Path):
    project = make_project(tmp_path / "project", {"too-old": MODELS["too-old"]})
    found = synthesise(project, tmp_path / "out")
    assert set(found.stacks()) == {"foundation", "too-old"}
    assert "Slipway builds no image on Triton 24.05" in found.annotations("too-old", "error")[0]


def test_the_build_may_pull_the_bases(assembly: Assembly):
    account = image(TRITON, "26.05", "eu-west-1").account
    assert pulled(assembly, STACK) == [f"arn:aws:ecr:eu-west-1:{account}:repository/{TRITON}"]
