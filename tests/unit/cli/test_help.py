"""What `slipway` says of itself: its help, the names that a shell completes, and the next step."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command

from slipway.cli.main import app
from slipway.cli.overview import JOURNEYS
from tests.support.page_commands import check_command
from tests.support.pages import ROOT
from tests.support.projects import config_text, write_project
from tests.support.starts import count_start


def test_every_command_is_in_one_journey_in_the_order_of_its_page():
    listed = [name for names in JOURNEYS.values() for name in names]
    known = [command.name or command.callback.__name__ for command in app.registered_commands]
    assert sorted(listed) == sorted([*(name.replace("_", "-") for name in known), "local"])
    titles = [
        line.removeprefix("## ")
        for line in (ROOT / "docs" / "commands.md").read_text("utf-8").splitlines()
        if line.startswith("## ")
    ]
    assert titles[1:] == list(JOURNEYS)
    for names in JOURNEYS.values():
        for example in names.values():
            check_command(example)


def test_the_help_has_whole_sentences_and_the_examples(slipway_command):
    text = slipway_command.done("-h")
    assert text == slipway_command("--help")[1]
    words = " ".join(text.split())
    assert "..." not in text.replace("[ARGS]...", "")
    for names in JOURNEYS.values():
        for example in names.values():
            assert f"$ {example}" in words
    assert slipway_command("plan", "-h")[1] == slipway_command("plan", "--help")[1]


def test_without_a_command_it_says_the_next_step(tmp_path, monkeypatch, slipway_command):
    monkeypatch.chdir(tmp_path)
    assert slipway_command.done().startswith("no Slipway project here: ")
    project = tmp_path / "project"
    project.mkdir()
    write_project(project, {name: config_text(name) for name in ("one", "two")}, published=["one"])
    monkeypatch.chdir(project)
    assert slipway_command()[1] == (
        f"{project}: 2 models, 1 of them never published\n"
        "The embedded AWS is not running.\n\n"
        "Next: slipway local start\n"
        "`slipway --help` lists the commands.\n"
    )
    for path in (project / "model_configs").iterdir():
        path.unlink()
    assert "Next: slipway init NAME --weights DIRECTORY\n" in slipway_command()[1]


def test_every_name_of_a_model_and_of_an_environment_is_completed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_project(tmp_path, {"ranker": config_text("ranker")})
    group = get_command(app)
    for name, command in group.commands.items():
        context = command.make_context(name, [], resilient_parsing=True)
        for parameter in command.params:
            wanted = {"name": "ranker", "names": "ranker", "env": "local"}.get(parameter.name)
            # A new model has no name yet, and a new project no environment.
            if (
                wanted
                and (parameter.name, name) != ("env", "new")
                and not (parameter.name == "name" and name in JOURNEYS["Write a config"])
            ):
                found = [each.value for each in parameter.shell_complete(context, "")]
                assert wanted in found, f"{name}: {parameter.name}"


@pytest.mark.parametrize(
    ("shell", "typed", "wanted"),
    [
        ("bash", "slipway plan r", ("ranker", "reader")),
        ("zsh", "slipway review r", ("ranker", "reader")),
        ("fish", "slipway plan ranker --env ", ("local", "production")),
    ],
)
def test_a_shell_completes_names(shell, typed, wanted, tmp_path):
    write_project(tmp_path, {name: config_text(name) for name in ("ranker", "reader")})
    count_start("python")
    done = subprocess.run(
        [Path(sys.executable).parent / "slipway"],
        cwd=tmp_path,
        env={
            **os.environ,
            "_SLIPWAY_COMPLETE": f"complete_{shell}",
            "_TYPER_COMPLETE_ARGS": typed,
            "_TYPER_COMPLETE_FISH_ACTION": "get-args",
            "COMP_WORDS": typed,
            "COMP_CWORD": "2",
        },
        capture_output=True,
        text=True,
    )
    assert all(each in done.stdout for each in wanted)


@pytest.mark.parametrize(
    ("module", "heavy"),
    [
        (
            "slipway.cli.main",
            (
                "aws_cdk",
                "boto",
                "jsii",
                "moto",
                "numpy",
                "pydantic",
                "rich",
                "slipway.planning",
                "slipway.project",
                "yaml",
            ),
        ),
        pytest.param("app", ("boto", "moto", "rich"), marks=pytest.mark.size("all")),
    ],
    ids=["command line", "app"],
)
def test_a_program_starts_without_what_only_single_commands_need(module, heavy):
    code = f"import sys, {module}; print([m for m in sys.modules if m.startswith({heavy})])"
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert run.stdout == "[]\n"
