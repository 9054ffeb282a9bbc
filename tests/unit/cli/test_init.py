"""`slipway init`: what it writes is valid and explained, and what it lacks it asks for or names."""

from __future__ import annotations

import sys

import pytest
import typer
import yaml

from slipway.cli import main as cli
from slipway.config.editor_schema import FIRST_LINE
from slipway.project import Project
from tests.unit.projects import LOCAL, write_project

FLAGS = (
    "--family", "gpt2", "--parameters", "124439808", "--instance", "ml.g4dn.xlarge",
    "--sample", "samples/tiny", "--latency-milliseconds", "600",
)  # fmt: skip


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(write_project(tmp_path, {}))

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["slipway", "init", *arguments])
        with pytest.raises(SystemExit) as exit_request:
            cli.main()
        captured = capsys.readouterr()
        return int(str(exit_request.value.code)), captured.out, captured.err

    return run


def test_flags_make_a_valid_explained_config(run, tmp_path):
    code, output, _ = run("search", *FLAGS)
    assert (code, output) == (
        0,
        "model_configs/search.yaml written. Next: `slipway publish search`, then "
        "`cdk deploy search`.\n",
    )
    text = (tmp_path / "model_configs" / "search.yaml").read_text("utf-8")
    assert text.splitlines()[0] == FIRST_LINE
    assert max(map(len, text.splitlines())) <= 100
    # Every field has a comment above it.
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if line and not line.lstrip().startswith("#"):
            assert lines[number - 1].lstrip().startswith("#"), line
    plan = Project(tmp_path).plan("search", LOCAL, allow_unpublished=True)
    assert plan.variants[0].instance_type == "ml.g4dn.xlarge"


def test_a_custom_image(run, tmp_path):
    uri = "123456789012.dkr.ecr.us-east-1.amazonaws.com/search:1.4.2"
    assert run("own", "--container", "custom", "--image-uri", uri, *FLAGS)[0] == 0
    plan = Project(tmp_path).plan("own", LOCAL, allow_unpublished=True)
    assert plan.image.uri == uri


def test_without_a_terminal_the_missing_flags_are_named(run, tmp_path):
    code, _, errors = run("search", *FLAGS[:4])
    assert code == 1
    assert "this is no terminal to ask on\n    Give --instance, --sample, --latency-" in errors
    assert not (tmp_path / "model_configs" / "search.yaml").exists()


def test_on_a_terminal_it_asks(run, tmp_path, monkeypatch):
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    answers = {"Hosting instance type": "ml.g5.xlarge"}
    monkeypatch.setattr(typer, "prompt", lambda question, type: type(answers[question]))
    flags = [flag for flag in FLAGS if flag not in ("--instance", "ml.g4dn.xlarge")]
    assert run("search", *flags)[0] == 0
    content = yaml.safe_load((tmp_path / "model_configs" / "search.yaml").read_text("utf-8"))
    assert content["endpoint"]["instances"] == ["ml.g5.xlarge"]


def test_what_is_wrong_is_written_and_reported_with_its_line(run, tmp_path):
    code, _, errors = run("search", *FLAGS[:4], "--instance", "ml.c5.xlarge", *FLAGS[6:])
    assert code == 1
    assert errors.startswith("model_configs/search.yaml written; correct what is wrong in it:\n")
    assert "ml.c5.xlarge has no accelerator" in errors
    assert "model_configs/search.yaml:" in errors


def test_nothing_is_overwritten_and_no_starter_is_guessed(run):
    assert run("search", *FLAGS)[0] == 0
    code, _, errors = run("search", *FLAGS)
    assert code == 1
    assert "model_configs/search.yaml is there already" in errors
    code, _, errors = run("other", "--container", "lmi", *FLAGS)
    assert code == 1
    assert "there is no starter for the container 'lmi'" in errors
