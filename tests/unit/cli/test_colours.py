"""Colours are on a terminal and nowhere else, and take no room in a table."""

import os
import pty
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from slipway.cli import main as cli
from slipway.cli.list_ import as_table
from slipway.cli.output import as_lines, heading, print_error, state
from slipway.codes.code import Code
from slipway.errors import UserError
from slipway.operations.fleet import FleetRow
from tests.support.projects import config_text, write_project
from tests.support.repositories import commit, make_repository

ESCAPE = "\x1b["
_COLOUR = re.compile(r"\x1b\[\d+m")


Shown = Callable[[], str]


@contextmanager
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Shown]:
    """Makes both streams a terminal; gives a function that returns what it shows since then."""
    ours, theirs = pty.openpty()
    os.set_blocking(ours, False)
    with monkeypatch.context() as patch, os.fdopen(theirs, "w", encoding="utf-8") as stream:
        patch.setattr(sys, "stdout", stream)
        patch.setattr(sys, "stderr", stream)
        patch.setenv("TERM", "xterm")

        def shown() -> str:
            stream.flush()
            return os.read(ours, 100_000).decode().replace("\r\n", "\n")

        yield shown
    os.close(ours)


@pytest.fixture
def project(tmp_path, monkeypatch):
    make_repository(tmp_path)
    write_project(tmp_path, {"tiny": config_text("tiny")}, published=["tiny"])
    commit(tmp_path)
    larger = config_text("tiny", ("[ml.g4dn.xlarge]", "[ml.g4dn.2xlarge]"))
    (tmp_path / "model_configs" / "tiny.yaml").write_text(larger, "utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


REVIEW = ("review", "--base", "HEAD")


@pytest.mark.usefixtures("project")
def test_a_terminal_shows_headings_and_states(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["slipway", *REVIEW])
    with terminal(monkeypatch) as shown:
        with pytest.raises(SystemExit):
            cli.main()
        coloured = shown()
        monkeypatch.setenv("NO_COLOR", "1")
        with pytest.raises(SystemExit):
            cli.main()
        plain = shown()
    assert coloured.startswith("\x1b[1mtiny in `production`\x1b[0m\n")
    assert "\x1b[33m\x1b[1mnew fleet\x1b[0m: 2 x ml.g4dn.2xlarge start" in coloured
    # Nothing but the colours differs: no meaning is told by a colour alone, and columns stand.
    assert plain == _COLOUR.sub("", coloured)


ERROR = UserError.of(Code.NO_PROJECT, "message", "remedy")


@pytest.mark.parametrize(
    "variables", [{"NO_COLOR": "1"}, {"TERM": "dumb"}, {"NO_COLOR": "1", "FORCE_COLOR": "1"}]
)
def test_a_terminal_can_be_without(variables, monkeypatch):
    with terminal(monkeypatch) as shown:
        print_error(ERROR, as_json=False)
        assert shown().startswith("\x1b[31m\x1b[1m1 problem\x1b[0m\n- message [SW")
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        print_error(ERROR, as_json=False)
        assert shown().startswith("1 problem\n- message [SW")
        assert (heading("a"), state("OK  b")) == ("a", "OK  b")


@pytest.mark.usefixtures("project")
def test_pipes_have_none_unless_forced(slipway_command, monkeypatch):
    assert ESCAPE not in slipway_command(*REVIEW)[1]
    monkeypatch.setenv("FORCE_COLOR", "0")
    assert ESCAPE not in slipway_command(*REVIEW)[1]
    for name in ("FORCE_COLOR", "CLICOLOR_FORCE"):
        monkeypatch.setenv(name, "1")
        assert ESCAPE in slipway_command(*REVIEW)[1]
        assert ESCAPE in slipway_command("plan", "nothing")[2]
        monkeypatch.delenv(name)


def test_files_and_json_have_none_although_forced(project, slipway_command, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    for arguments in (
        (*REVIEW, "--json"),
        (*REVIEW, "--markdown"),
        ("plan", "tiny", "--json"),
        ("plan", "nothing", "--json"),
    ):
        code, printed, error = slipway_command(*arguments)
        assert ESCAPE not in printed + error, (code, arguments)
    (project / "model_configs" / "tiny.yaml").write_text("name: 1", "utf-8")
    slipway_command("validate", "--sarif", "problems.sarif")
    text = (project / "problems.sarif").read_text("utf-8")
    assert "SW" in text
    assert "u001b" not in text


def test_colours_take_no_room(monkeypatch):
    rows = [("verdict", "in place: a"), ("", "b"), ("  warning", "c"), ("refused by AWS", "d")]
    fleet = [
        FleetRow("a", "local", "in service", instances="1 x ml.g5.xlarge"),
        FleetRow("later", "local", "UPDATE_ROLLBACK_COMPLETE", idle_days=3),
    ]
    plain = (as_lines(rows), as_table(fleet))
    monkeypatch.setenv("FORCE_COLOR", "1")
    coloured = (as_lines(rows), as_table(fleet))
    assert tuple(_COLOUR.sub("", each) for each in coloured) == plain
    assert "\x1b[32m\x1b[1min place\x1b[0m: a" in coloured[0]
    assert "\x1b[33m\x1b[1m  warning\x1b[0m       c" in coloured[0]
    assert "\x1b[31m\x1b[1mUPDATE_ROLLBACK_COMPLETE\x1b[0m" in coloured[1]


@pytest.mark.parametrize(
    ("text", "colour"),
    [
        ("OK  in service", 32), ("UPDATE_COMPLETE since", 32), ("unknown: the base", 33),
        ("ROLLBACK_IN_PROGRESS", 31), ("2 problems\n- a", 31), ("in place-holder", None),
        ("OKAY", None), ("removed-local in 1/2", None),
    ],
)  # fmt: skip
def test_only_whole_words_are_states(text, colour, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert state(text).startswith(f"\x1b[{colour}m") is (colour is not None)
