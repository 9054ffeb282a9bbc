"""The stacks of images: which apps hold them, who depends on them, and what changes them."""

import os
from pathlib import Path

import pytest

from slipway.facts.images import ImageFacts, image
from slipway.facts.tensorrt.releases import tensorrt_releases
from slipway.facts.triton.releases import TRITON
from slipway.image_sources import image_digest, image_files
from slipway.planning.compiling import compiler_image
from slipway.planning.families.lmi.handlers import image_bases
from slipway.project import Project
from slipway.stacks.assembly import Selection
from slipway.stacks.image_stack import images_to_build
from tests.support.projects import PRODUCTION
from tests.synth.assemblies import Assembly, add_stacks, new_app
from tests.synth.image_stacks import (
    REGISTRY,
    STACK,
    WITHOUT_IMAGE,
    make_project,
    requests,
    sources,
    statements,
    synthesise,
)

DEEPSPEED = ("djl-deepspeed", "0.23.0")
FASTERTRANSFORMER = ("djl-fastertransformer", "0.24.0")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return make_project(tmp_path_factory.mktemp("project"))


@pytest.fixture(scope="module")
def assembly(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Assembly:
    return synthesise(project, tmp_path_factory.mktemp("cdk.out"))


def dependencies(assembly: Assembly, stack: str) -> set[str]:
    found = assembly.stacks()[stack].get("dependencies", [])
    return {name for name in found if not name.endswith(".assets")}


def image_of(assembly: Assembly, model: str) -> str:
    found = assembly.only(model, "AWS::SageMaker::Model")["Properties"]["PrimaryContainer"]
    return str(found["Image"])


# Which stacks an app holds


def test_a_models_stack_waits_for_its_image_and_runs_it(assembly: Assembly, project: Project):
    for family, models in {
        "tensorrt": ("newest", "volta"),
        "lmi": ("gptj", "gptj-again"),
        "triton": ("triton-newest", "triton-volta"),
    }.items():
        stack = f"image-{family}"
        assert assembly.stacks()[stack]["properties"]["stackName"] == f"{stack}-production"
        assert dependencies(assembly, stack) == set()
        built = {uri for uri, _, _ in requests(assembly, stack)}
        images = [project.plan(model, PRODUCTION).image for model in models]
        for model, each in zip(models, images, strict=True):
            assert dependencies(assembly, model) == {"foundation", stack}
            assert image_of(assembly, model) == each.uri
        if family == "lmi":
            assert {each.uri for each in images} < built
        else:
            assert {made.uri for each in images for made in (each, compiler_image(each))} == built


def test_every_image_that_a_plan_can_name_is_built_on_each_base(
    assembly: Assembly, project: Project
):
    def of_both_targets(family: str, bases: dict[str, str | None]) -> list[tuple[str, ...]]:
        digest = image_digest(project.root, family)
        return [
            (f"{REGISTRY}/slipway/{family}:{tag}-{digest}{suffix}", str(base), target)
            for tag, base in bases.items()
            for suffix, target in (("", "serving"), ("-compiler", "compiler"))
        ]

    assert requests(assembly, STACK) == of_both_targets(
        "tensorrt",
        {
            f"trt{release.version}": f"nvcr.io/nvidia/tensorrt:{release.base_image}"
            for release in tensorrt_releases().values()
        },
    )
    # What a config of the project names, whichever models are selected.
    assert requests(assembly, "image-triton") == of_both_targets(
        "triton",
        {f"triton{each}": image(TRITON, each, "eu-west-1").uri for each in ("24.09", "26.05")},
    )
    bases = [image(*each, "eu-west-1") for each in (DEEPSPEED, FASTERTRANSFORMER)]
    digest = image_digest(project.root, "lmi")
    assert requests(assembly, "image-lmi") == [
        (f"{REGISTRY}/slipway/lmi:{facts.tag}-{digest}", facts.uri, "serving") for facts in bases
    ]
    assert bases[0].tag == "0.23.0-deepspeed0.9.5-cu118"


def test_a_model_that_is_not_published_has_its_image_built_first(project: Project, tmp_path: Path):
    found = synthesise(project, tmp_path, "fresh")
    assert "was never published" in found.annotations("fresh", "error")[0]
    assert set(found.stacks()) == {"foundation", "fresh", STACK}
    assert len(requests(found, STACK)) == 4


def test_an_app_that_needs_no_image_has_no_stack_of_one(tmp_path: Path):
    project = make_project(tmp_path / "project", WITHOUT_IMAGE)
    found = synthesise(project, tmp_path / "out", allow_unpublished=True)
    assert set(found.stacks()) == {"foundation", *WITHOUT_IMAGE}
    assert image_of(found, "managed") == image(*DEEPSPEED, "eu-west-1").uri
    for name, reason in {
        "too-old": "Slipway has no handler for djl-deepspeed 0.20.0",
        "unknown": "there is no image of djl-deepspeed 0.1.0",
        "broken": "dtyp",
        "triton-too-old": "Slipway builds no image on Triton 24.05",
    }.items():
        assert reason in found.annotations(name, "error")[0]


def test_a_region_without_the_base_has_no_image_of_it():
    """AWS publishes FasterTransformer in fewer regions than there are."""
    away = PRODUCTION.model_copy(update={"region": "us-gov-west-1"})
    assert image(*FASTERTRANSFORMER, "us-gov-west-1").uri is None
    bases = image_bases(away, [DEEPSPEED, FASTERTRANSFORMER])
    built = images_to_build(away, "lmi", "0", bases)
    expected = image(*DEEPSPEED, "us-gov-west-1").uri
    assert [each.base_image for each in built] == ([expected] if expected else [])


@pytest.mark.parametrize(
    ("family", "base", "repository"),
    [
        ("lmi", image(*DEEPSPEED, "eu-west-1"), "djl-inference"),
        ("triton", image(TRITON, "26.05", "eu-west-1"), TRITON),
    ],
)
def test_the_build_may_pull_its_bases_and_has_a_dockerfile_of_its_own(
    assembly: Assembly, family: str, base: ImageFacts, repository: str
):
    stack = f"image-{family}"
    assert statements(assembly, stack, "codebuild")["PullBases"]["Resource"] == (
        f"arn:aws:ecr:eu-west-1:{base.account}:repository/{repository}"
    )
    build = assembly.only(stack, "AWS::CodeBuild::Project")["Properties"]
    assert build["Environment"]["EnvironmentVariables"] == [
        {"Name": "DOCKERFILE", "Type": "PLAINTEXT", "Value": f"containers/{family}/Dockerfile"}
    ]
    made = assembly.only(stack, "AWS::ECR::Repository")["Properties"]
    assert made["RepositoryName"] == f"slipway/{family}"


def test_the_selection_does_not_change_the_stack(
    assembly: Assembly, project: Project, tmp_path: Path
):
    for model, stack in (("newest", STACK), ("gptj", "image-lmi"), ("triton-own", None)):
        alone = synthesise(project, tmp_path / model, model, allow_unpublished=True)
        assert set(alone.stacks()) - {stack} == {"foundation", model}
        assert stack is None or alone.template(stack) == assembly.template(stack)


def test_the_embedded_aws_builds_nothing(project: Project, tmp_path: Path):
    found = synthesise(project, tmp_path, "newest", environment="local")
    assert set(found.stacks()) == {"foundation", "newest"}
    assert dependencies(found, "newest") == {"foundation"}


def test_a_missing_source_stops_only_who_needs_it(tmp_path: Path):
    project = make_project(tmp_path / "project")
    (project.root / "containers/tensorrt/Dockerfile").unlink()
    found = synthesise(project, tmp_path / "out", "newest")
    assert set(found.stacks()) == {"foundation", "newest"}
    assert "lacks Dockerfile" in found.annotations("newest", "error")[0]


@pytest.mark.parametrize(("named", "count"), [(["newest"], 1), (["newest", STACK], 0), (["**"], 0)])
def test_leaving_the_image_out_is_mentioned(project: Project, tmp_path: Path, named, count):
    app = new_app(tmp_path, **{"aws:cdk:bundling-stacks": named})
    add_stacks(app, project, Selection(environment="production", models=("newest",)))
    metadata = app.node.find_child("newest").node.metadata
    notes = [entry.data for entry in metadata if entry.type == "aws:cdk:info"]
    wording = (
        "Deployed without its image (--exclusively). Where that is not there yet, "
        "run `cdk deploy image-tensorrt -c env=production` first."
    )
    assert notes.count(wording) == count


def test_environments_of_one_account_and_region_share_the_repository(
    assembly: Assembly, project: Project, tmp_path: Path
):
    assert len(assembly.resources(STACK, "AWS::ECR::Repository")) == 1
    assert assembly.annotations(STACK, "info") == []
    staging = synthesise(project, tmp_path / "staging", "newest", environment="staging")
    assert staging.resources(STACK, "AWS::ECR::Repository") == {}
    assert requests(staging, STACK) == requests(assembly, STACK)
    assert staging.annotations(STACK, "info") == [
        "The repository slipway/tensorrt belongs to the environment production, which comes first "
        "in environments.yaml and has the same account and region. Where it is not there yet, run "
        "`cdk deploy image-tensorrt -c env=production` first."
    ]
    other = synthesise(project, tmp_path / "elsewhere", "newest", environment="elsewhere")
    assert len(other.resources(STACK, "AWS::ECR::Repository")) == 1


# What changes it


def changed_by(root: Path, tmp_path: Path, *paths: str) -> tuple[Assembly, Assembly]:
    project = make_project(root)
    before = synthesise(project, tmp_path / "before", "newest")
    for path in paths:
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("# another\n")
    return before, synthesise(Project(root), tmp_path / "after", "newest")


def test_a_change_of_the_sources_changes_tag_and_asset(tmp_path: Path):
    before, after = changed_by(tmp_path / "p", tmp_path, "containers/serving/main.py")
    assert sources(before) != sources(after)
    old, new = ({uri for uri, _, _ in requests(found, STACK)} for found in (before, after))
    assert old.isdisjoint(new)
    assert image_of(after, "newest") in new


def test_a_change_elsewhere_changes_nothing(tmp_path: Path):
    elsewhere = (
        "README.md", "containers/triton/model.py", "containers/serving/__pycache__/main.pyc",
    )  # fmt: skip
    before, after = changed_by(tmp_path / "p", tmp_path, *elsewhere)
    assert before.template(STACK) == after.template(STACK)


def test_two_checkouts_give_the_same_bytes(tmp_path: Path):
    found = []
    for name in ("one", "an other/place"):
        root = tmp_path / name
        project = make_project(root)
        for path in (root / "containers").rglob("*"):
            os.utime(path, (len(found), len(found)))
        synthesise(project, root / "out", "newest")
        files = (root / "out").rglob("*")
        found.append(
            {
                path.relative_to(root / "out").as_posix(): path.read_bytes()
                for path in files
                if path.is_file() and (path.name.startswith(STACK) or "asset." in str(path))
            }
        )
    assert found[0] == found[1]
    assert {Path(name).name for name in found[0]} >= {"image_build.py", "Dockerfile", "main.py"}


def test_the_asset_holds_the_images_files_and_no_other(assembly: Assembly, project: Project):
    digest = sources(assembly).rpartition("/")[2].removesuffix(".zip")
    folder = assembly.directory / f"asset.{digest}"
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert files == set(image_files(project.root, "tensorrt"))
    assert "containers/tensorrt/Dockerfile" in files
    assert image_digest(folder, "tensorrt") == image_digest(project.root, "tensorrt")
