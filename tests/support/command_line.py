"""The `slipway` command in the tests' own process."""

import functools
import json
import sys
from typing import Any

import pytest
import typer

from slipway.cli import main as cli

# Typer reads the signatures of all commands anew in each run.
_command_of = functools.cache(typer.main.get_command)


class Run:
    """Runs `slipway` with some arguments, and those of each call behind them."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *first: str
    ) -> None:
        self._monkeypatch, self._capsys, self._first = monkeypatch, capsys, first

    def of(self, *first: str) -> "Run":
        return Run(self._monkeypatch, self._capsys, *self._first, *first)

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        """Returns exit status, standard output and error."""
        self._monkeypatch.setattr(sys, "argv", ["slipway", *self._first, *arguments])
        with pytest.raises(SystemExit) as exit_request:
            cli.main()
        captured = self._capsys.readouterr()
        code = exit_request.value.code
        assert isinstance(code, int)
        return code, captured.out, captured.err

    def done(self, *arguments: str) -> str:
        """Returns the output of a run that ends with 0 and says nothing beside it."""
        code, output, errors = self(*arguments)
        assert (code, errors) == (0, ""), output
        return output

    def document(self, *arguments: str) -> Any:
        """Returns what such a run prints with `--json`."""
        return json.loads(self.done(*arguments, "--json"))

    def problems(self, *arguments: str) -> Any:
        """Returns the problems that a run with `--json` ends with."""
        code, output, errors = self(*arguments, "--json")
        assert (code, errors) == (1, "")
        return json.loads(output)["problems"]

    def refused(self, *arguments: str) -> str:
        """Returns the report of a run that ends with 1 and has no output."""
        code, output, errors = self(*arguments)
        assert (code, output) == (1, ""), errors
        return errors


@pytest.fixture
def slipway_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.setattr(typer.main, "get_command", _command_of)
    return Run(monkeypatch, capsys)
