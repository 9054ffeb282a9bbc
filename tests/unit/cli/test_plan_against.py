"""`slipway plan --against`: what a deploy would do, compared with another commit."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.projects import config_text, write_project
from tests.support.repositories import commit, git, make_repository

MODEL = "tiny"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project in a folder of a repository, whose file has another type than its commit."""
    root = tmp_path / "service"
    root.mkdir()
    make_repository(tmp_path)
    commit(tmp_path)
    git(tmp_path, "tag", "empty")
    # A link that leads nowhere is no obstacle.
    (root / "notes").symlink_to("/nowhere")
    write_project(root, {MODEL: config_text(MODEL)}, published=[MODEL])
    commit(tmp_path)
    edited = config_text(MODEL, ("[ml.g4dn.xlarge]", "[ml.g4dn.2xlarge]"))
    (root / "model_configs" / f"{MODEL}.yaml").write_text(edited, encoding="utf-8")
    monkeypatch.chdir(root)
    return root


@pytest.mark.usefixtures("project")
def test_the_plan_is_followed_by_what_a_deploy_would_do(slipway_command: Any):
    code, plain, _ = slipway_command("plan", MODEL)
    assert code == 0
    code, text, _ = slipway_command("plan", MODEL, "--against", "main")
    assert code == 0
    assert text == (
        plain + "\n"
        "deploy     new fleet: 2 x ml.g4dn.2xlarge start beside the old fleet, within minutes; "
        "quota of 2\n"
        "new fleet  endpoint.instances: ml.g4dn.xlarge -> ml.g4dn.2xlarge (nothing scales "
        "meanwhile)\n"
    )
    code, printed, _ = slipway_command("plan", MODEL, "--against", "HEAD", "--json")
    found = json.loads(printed)["consequences"]
    assert (code, found["verdict"]) == (0, "new fleet")
    assert [(each["setting"], each["consequence"]) for each in found["effects"]] == [
        ("endpoint.instances", "new fleet")
    ]
    code, printed, _ = slipway_command("plan", MODEL, "--json")
    assert "consequences" not in json.loads(printed)


def test_an_unchanged_plan_says_so(project: Path, slipway_command: Any):
    git(project, "checkout", "--", ".")
    _, text, _ = slipway_command("plan", MODEL, "--against", "main")
    assert text.endswith("\n\ndeploy  no change\n")


@pytest.mark.usefixtures("project")
def test_nothing_to_compare_with_is_an_error(slipway_command: Any):
    code, _, error = slipway_command("plan", MODEL, "--against", "nowhere")
    assert code == 1
    assert "git has no commit nowhere [SW417]" in error
    code, _, error = slipway_command("plan", MODEL, "--against", "empty")
    assert code == 1
    assert f"empty has no plan of {MODEL} in `local`: " in error
    assert "[SW456]" in error
    assert "Name a commit that deploys the model." in error
