"""The image stack: which apps hold it, who depends on it, and what changes it."""

import os
from pathlib import Path

import pytest

from slipway.facts.tensorrt.releases import tensorrt_releases
from slipway.image_sources import image_digest, image_files
from slipway.planning.images import compiler_image
from slipway.project import Project
from slipway.stacks.assembly import Selection
from tests.support.projects import PRODUCTION
from tests.synth.assemblies import Assembly, add_stacks, new_app
from tests.synth.image_stacks import (
    REGISTRY,
    SHARED,
    STACK,
    make_project,
    requests,
    sources,
    synthesise,
)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return make_project(tmp_path_factory.mktemp("project"), environments=SHARED)


@pytest.fixture(scope="module")
def assembly(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Assembly:
    return synthesise(project, tmp_path_factory.mktemp("cdk.out"))


def dependencies(assembly: Assembly, stack: str) -> set[str]:
    found = assembly.stacks()[stack].get("dependencies", [])
    return {name for name in found if not name.endswith(".assets")}


# Which stacks an app holds


def test_a_models_stack_waits_for_its_image(assembly: Assembly):
    assert assembly.stacks()[STACK]["properties"]["stackName"] == "image-tensorrt-production"
    for model in ("newest", "volta"):
        assert dependencies(assembly, model) == {"foundation", STACK}
    assert dependencies(assembly, STACK) == set()


def test_every_image_that_a_plan_can_name_is_built(assembly: Assembly, project: Project):
    repository = f"{REGISTRY}/slipway/tensorrt"
    digest = image_digest(project.root, "tensorrt")
    assert requests(assembly, STACK) == [
        (
            f"{repository}:trt{release.version}-{digest}{suffix}",
            f"nvcr.io/nvidia/tensorrt:{release.base_image}",
            target,
        )
        for release in tensorrt_releases().values()
        for suffix, target in (("", "serving"), ("-compiler", "compiler"))
    ]
    built = {uri for uri, _, _ in requests(assembly, STACK)}
    serving = [project.plan(model, PRODUCTION).image for model in ("newest", "volta")]
    named = {image.uri for each in serving for image in (each, compiler_image(each))}
    assert named == built
    assert len(named) == 4


def test_a_model_that_is_not_published_has_its_image_built_first(project: Project, tmp_path: Path):
    found = synthesise(project, tmp_path, "fresh")
    assert "was never published" in found.annotations("fresh", "error")[0]
    assert set(found.stacks()) == {"foundation", "fresh", STACK}
    assert len(requests(found, STACK)) == 4


def test_an_app_that_needs_no_image_has_no_stack_of_one(project: Project, tmp_path: Path):
    assert set(synthesise(project, tmp_path, "triton").stacks()) == {"foundation", "triton"}


def test_the_selection_does_not_change_the_stack(
    assembly: Assembly, project: Project, tmp_path: Path
):
    alone = synthesise(project, tmp_path, "newest")
    assert set(alone.stacks()) == {"foundation", "newest", STACK}
    assert alone.template(STACK) == assembly.template(STACK)


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
    image = after.only("newest", "AWS::SageMaker::Model")["Properties"]["PrimaryContainer"]["Image"]
    assert image in new


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
