"""The `slipway` command in the tests' own process."""

import functools
import sys
from collections.abc import Callable

import pytest
import typer

from slipway.cli import main as cli

Run = Callable[..., tuple[int, str, str]]

# Typer reads the signatures of all commands anew in each run.
_command_of = functools.cache(typer.main.get_command)


@pytest.fixture
def slipway_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs `slipway` with the given arguments; returns exit status, standard output and error."""
    monkeypatch.setattr(typer.main, "get_command", _command_of)

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["slipway", *arguments])
        with pytest.raises(SystemExit) as exit_request:
            cli.main()
        captured = capsys.readouterr()
        code = exit_request.value.code
        assert isinstance(code, int)
        return code, captured.out, captured.err

    return run
