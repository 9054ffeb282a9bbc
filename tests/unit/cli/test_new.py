"""`slipway new`: the files of a project of one's own, and what it refuses."""

import pytest
import yaml

import slipway
from slipway.new_project import WHEEL, new_files
from slipway.project import Project
from tests.support.pages import ROOT, blocks

# One source: the clone's own files.
SAME = (
    ".gitignore", ".npmrc", "app.py", "cdk.json", "environments.yaml", "package-lock.json",
    "package.json", "model_configs/gpt2-autocomplete.yaml", "model_configs/schema.json",
    *(f"samples/gpt2-autocomplete/model/{name}" for name in (
        "config.json", "generation_config.json", "model.onnx", "model.safetensors",
        "tokenizer.json", "tokenizer_config.json",
    )),
)  # fmt: skip
WORKFLOWS = (
    ".github/actions/set-up/action.yml",
    ".github/workflows/models.yml",
    ".github/workflows/publish.yml",
)
OTHERS = ("README.md", "requirements.txt", "requirements-local.txt")


def test_its_files_are_the_clones_own():
    files = new_files([])
    assert set(files) == {*SAME, *WORKFLOWS, *OTHERS}
    for name in SAME:
        assert files[name] == (ROOT / name).read_bytes(), name
    page = {
        block.text.encode()
        for block in blocks(ROOT / "docs" / "ci.md")
        if block.labels in (("workflow",), ("action",))
    }
    assert {files[name] for name in WORKFLOWS} == page
    assert len((ROOT / "app.py").read_text().splitlines()) <= 6


def test_it_pins_slipway_and_the_cdk():
    files = new_files([])
    lines = files["requirements.txt"].decode().splitlines()
    # The project of that name on PyPI is another one.
    assert (
        lines[1]
        == f"./wheels/{WHEEL}"
        == f"./wheels/slipway-{slipway.__version__}-py3-none-any.whl"
    )
    assert f"{lines[2]} \\" in (ROOT / "requirements.txt").read_text().splitlines()
    assert lines[2].startswith("aws-cdk-lib==")
    local = files["requirements-local.txt"].decode().splitlines()
    assert local[1:] == ["-r requirements.txt", f"./wheels/{WHEEL}[local]"]


def test_a_new_project_is_valid_in_every_environment(tmp_path, slipway_command, monkeypatch):
    monkeypatch.chdir(tmp_path)
    accounts = ("staging=111122223333/eu-west-1", "live=444455556666/us-east-1")
    options = [word for each in accounts for word in ("--env", each)]
    out = slipway_command.done("new", "naïve models", *options)
    assert out == (
        "naïve models has a new project of 21 files. Its README.md explains them.\n"
        f"Put {WHEEL} into naïve models/wheels. `make wheel` in Slipway's checkout makes it.\n"
        "Next: cd 'naïve models' && npm ci, then `slipway local start`.\n"
    )
    project = Project(tmp_path / "naïve models")
    assert list(project.environment_names) == ["local", "ci", "staging", "live"]
    assert project.environment("live").account == "444455556666"
    for name in project.environment_names:
        plan = project.plan("gpt2-autocomplete", project.environment(name), allow_unpublished=True)
        assert plan.endpoint_name == f"gpt2-autocomplete-{name}"
    workflow = yaml.safe_load((project.root / ".github/workflows/models.yml").read_text())
    assert workflow["env"] == {"SLIPWAY_ENV": "staging"}
    assert workflow["jobs"]["deploy"]["environment"] == "staging"


def test_a_clone_of_an_empty_repository_is_empty_and_workflows_belong_to_its_top(
    tmp_path, slipway_command, monkeypatch
):
    for name in (".git", ".venv", "wheels"):
        (tmp_path / name).mkdir()
    (tmp_path / "wheels" / WHEEL).write_bytes(b"a wheel")
    monkeypatch.chdir(tmp_path)
    out = slipway_command.done("new", ".")
    assert "Put slipway" not in out
    assert out.endswith("\nNext: npm ci, then `slipway local start`.\n")
    assert (tmp_path / "wheels" / WHEEL).read_bytes() == b"a wheel"
    out = slipway_command.done("new", str(tmp_path / "ml" / "models"))
    assert f"The git repository is {tmp_path}. GitHub reads workflows in its .github alone" in out


@pytest.mark.parametrize(
    ("names", "message", "remedy"),
    [
        (["a.txt"], "is not empty: it has a.txt [SW408]", "empty or not there yet."),
        ([*"abcdefg"], "it has a, b, c, d, e and 2 more [SW408]", "empty or not there yet."),
        (["environments.yaml"], "it has environments.yaml [SW408]", "`slipway init NAME` there"),
    ],
)
def test_a_folder_with_files_stays_as_it_is(tmp_path, slipway_command, names, message, remedy):
    for name in names:
        (tmp_path / name).touch()
    err = slipway_command.refused("new", str(tmp_path))
    assert message in err
    assert remedy in err
    assert sorted(each.name for each in tmp_path.iterdir()) == names


def test_a_second_time_it_is_a_project_already(tmp_path, slipway_command):
    directory = str(tmp_path / "models")
    slipway_command.done("new", directory)
    err = slipway_command.refused("new", directory)
    assert "It is a project already: `slipway init NAME` there writes a model's config." in err


def test_where_nothing_can_be_written_it_says_so(tmp_path, slipway_command):
    file = tmp_path / "file"
    file.touch()
    assert f"{file} is a file [SW408]" in slipway_command.refused("new", str(file))
    err = slipway_command.refused("new", str(file / "models"))
    assert f"{file}/models cannot be written: Not a directory [SW426]" in err
    assert "Name another folder, or allow writing there." in err
    # Linux lets not even root write there, and macOS has no such folder on a read-only disk.
    err = slipway_command.refused("new", "/sys/models")
    assert err.startswith("1 problem\n- /sys/models cannot be written: ")


def test_every_wrong_environment_is_named(tmp_path, slipway_command):
    wrong = (
        "production", "Live=111122223333/eu-west-1", "live=1111/eu-west-1", "live=111122223333/eu",
        "ci=111122223333/eu-west-1", "project=111122223333/eu-west-1",
        f"{'a' * 21}=111122223333/eu-west-1",
    )  # fmt: skip
    right = ("live=111122223333/eu-west-1", "live=444455556666/eu-west-1")
    options = [word for each in (*wrong, *right) for word in ("--env", each)]
    err = slipway_command.refused("new", str(tmp_path / "models"), *options)
    assert err.startswith("8 problems\n")
    for each in wrong:
        assert f"- --env {each!r} is not NAME=ACCOUNT/REGION [SW409]" in err
    assert "- --env names live twice [SW409]" in err
    assert "Example: `--env production=123456789012/eu-west-1`." in err
    assert not (tmp_path / "models").exists()
