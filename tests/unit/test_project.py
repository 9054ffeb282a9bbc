"""A project on disk: found, selected from, planned; and the versions that its files pin."""

import pytest

import slipway
from slipway.errors import Location, UserError
from slipway.pins import pinned_versions
from slipway.planning.lock import Lock
from slipway.project import Project
from tests.support.projects import LOCAL, config_text, messages, refusal, write_project


@pytest.fixture
def project(tmp_path):
    models = {name: config_text(name) for name in ("search-a", "search-b", "tiny")}
    return Project(write_project(tmp_path, models, published=["tiny"]))


def test_it_is_found_from_any_folder_below(project, tmp_path_factory):
    assert Project.find(project.root / "samples" / "tiny") == project
    assert Project.find(project.root) == project
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    assert str(refusal(Project.find, elsewhere)) == (
        f"1 problem\n- no Slipway project here: neither {elsewhere} nor a folder above has "
        "environments.yaml [SW401]\n    Run the command inside a project, or start one with "
        "`slipway new DIRECTORY`."
    )
    other = project.root / "environments.yml"
    (project.root / "environments.yaml").rename(other)
    assert str(refusal(Project.find, project.root / "samples")) == (
        f"1 problem\n- {other} is not read: the file's name is environments.yaml [SW401]\n"
        "    Rename it to environments.yaml."
    )


def test_models_are_selected_by_pattern_in_order_and_once(project):
    assert project.select(["*"]) == ["search-a", "search-b", "tiny"]
    assert project.select(["tiny", "search-*", "search-a"]) == ["search-a", "search-b", "tiny"]
    assert project.select(["search-[b]"]) == ["search-b"]


def test_every_pattern_without_a_match_is_named_with_the_nearest(project):
    caught = refusal(project.select, ["tinny", "tiny", "nothing*"])
    assert messages(caught) == [
        "no model config matches 'tinny'",
        "no model config matches 'nothing*'",
    ]
    known = "model_configs/ has: search-a, search-b, tiny."
    assert [problem.remedy for problem in caught.problems] == [
        f"Did you mean `tiny`? {known}",
        known,
    ]
    # A name is not a pattern.
    with pytest.raises(UserError, match="no model config matches"):
        project.config("*", "local")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"version": 1, "sample": {', "file: Invalid JSON"),
        ('{"version": 3}', "version: Input should be 1"),
        ('{"sample": {"inputs_digest": "x"}}', "sample.inputs_digest: String should match"),
        ("<<<<<<< HEAD\n", "file: Invalid JSON"),
    ],
)
def test_a_broken_lock_is_reported_with_the_way_out(project, text, found):
    project.lock_path("tiny").write_text(text)
    report = str(refusal(project.plan, "tiny", LOCAL))
    assert report.startswith(f"1 problem\n- model_configs/tiny.lock.json: not a lock file: {found}")
    remedy = "Restore it with git, or delete it and run `slipway publish tiny`."
    assert report.endswith(f"\n    {remedy}")


def test_a_lock_is_empty_or_unreadable(project):
    assert project.lock("search-a") == Lock()
    assert project.lock("tiny").sample is not None
    project.lock_path("search-a").mkdir()
    assert str(refusal(project.lock, "search-a")) == (
        "1 problem\n- model_configs/search-a.lock.json: the lock file cannot be read: "
        "Is a directory [SW403]\n    Restore it with git."
    )


def test_problems_of_the_plan_have_their_place_in_the_config(project):
    path = project.files["tiny"]
    path.write_text(path.read_text().replace("default_new_tokens: 12", "default_new_tokens: 43"))
    assert str(refusal(project.plan, "tiny", LOCAL)).startswith(
        "1 problem\n- model_configs/tiny.yaml:13:3: serving.default_new_tokens: "
        "the default of 43 new tokens is above the limit of 42 [SW390]\n"
    )


def test_the_image_has_the_tag_of_its_sources_and_missing_ones_are_not_the_configs_fault(project):
    tag = project.plan("tiny", LOCAL).image.tag
    assert tag == f"trt10.13-{project.image_digests['tensorrt']}"
    (project.root / "containers/tensorrt/Dockerfile").unlink()
    assert str(refusal(Project(project.root).plan, "tiny", LOCAL)).startswith(
        "1 problem\n- containers/tensorrt of this project replaces Slipway's, "
    )


FILES = {
    "pyproject.toml": '[project]\ndependencies = [\n  "boto3",\n  "slipway[local]==0.2.0",\n]\n',
    "requirements.txt": "# slipway==9\nslipway==0.2.1 \\\n    --hash=sha256:00\nslipway-other==3\n",
    "requirements-dev.in": "./wheels/slipway-0.2.2-py3-none-any.whl\n",
    "uv.lock": '[[package]]\nname = "slipway"\nversion = "0.2.3"\n',
    "notes.txt": "slipway==4\n",
}


def test_every_form_of_a_pin_is_read_with_its_place(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, "utf-8")
    assert pinned_versions(tmp_path) == {
        Location("pyproject.toml", 4, 1): "0.2.0",
        Location("requirements.txt", 2, 1): "0.2.1",
        Location("requirements-dev.in", 1, 1): "0.2.2",
        Location("uv.lock", 2, 1): "0.2.3",
    }


@pytest.mark.parametrize(
    ("edit", "is_unknown"),
    [
        (("description:", "temperament: calm\ndescription:"), True),
        (("container: tensorrt", "container: abacus"), True),
        (("max_batch_size: 8", "max_batch_size: 0"), False),
    ],
)
def test_words_of_another_version_name_its_pin(tmp_path, edit, is_unknown):
    write_project(tmp_path, {"tiny": config_text("tiny", edit)})
    (tmp_path / "requirements.txt").write_text("slipway==99.0\n", "utf-8")
    told = [
        each
        for each in refusal(Project(tmp_path).config, "tiny", "production").problems
        if each.code == "SW798"
    ]
    assert len(told) == is_unknown
    for each in told:
        assert str(each) == (
            f"requirements.txt:1:1: the project pins slipway 99.0, and slipway "
            f"{slipway.__version__} runs [SW798]\n"
            "    Install what the project pins; or write the config for the version that runs."
        )
    # The version that runs may be pinned.
    (tmp_path / "requirements.txt").write_text(f"slipway=={slipway.__version__}\n", "utf-8")
    assert "SW798" not in str(refusal(Project(tmp_path).config, "tiny", "production"))
