"""`slipway diff|deploy|destroy`: what they run, and what they say before and after it."""

import os
from types import SimpleNamespace
from typing import Any

import pytest

from slipway.codes.code import Code
from slipway.errors import UserError
from slipway.planning.consequences import consequences
from tests.support.plans import plan_for
from tests.support.projects import config_text, model_config, write_project

MODEL = "tiny"
QUEUE = {"input": "s3://in/a/", "output": "s3://out/a/"}


@pytest.fixture
def ran(tmp_path, monkeypatch):
    """A project with a `cdk` that notes how it is called, and fails if an option says so."""
    write_project(tmp_path, {MODEL: config_text(MODEL)}, published=[MODEL])
    program, noted = tmp_path / "node_modules" / ".bin" / "cdk", tmp_path / "noted"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\necho "$@" >> {noted}\ncase "$*" in *fail*) exit 7;; esac\n')
    program.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("slipway.access.open_access", lambda *_: SimpleNamespace())
    return lambda: noted.read_text("utf-8").splitlines() if noted.exists() else []


def deployed(monkeypatch: pytest.MonkeyPatch, **sections: Any) -> None:
    """Has the account serve a model with other sections; without any, nothing."""

    def compare(plan: Any, _: Any) -> Any:
        if not sections:
            raise UserError.of(Code.NOT_DEPLOYED, "nothing", "deploy")
        return consequences(plan_for(model_config(MODEL, **sections), plan.environment), plan)

    monkeypatch.setattr("slipway.operations.against.compare_with_deployed", compare)


def shows(monkeypatch: pytest.MonkeyPatch, name: str) -> list[Any]:
    """Notes calls of the command that comes after the CDK CLI's."""
    calls: list[Any] = []
    note = lambda *names, **options: calls.append((names, options["env"]))  # noqa: E731
    monkeypatch.setattr(name, note)
    return calls


def test_a_deploy_says_its_verdict_and_then_what_is_served(ran, monkeypatch, slipway_command):
    asked = shows(monkeypatch, "slipway.cli.status.status")
    deployed(monkeypatch, endpoint={"instances": ["ml.g4dn.2xlarge"]})
    arguments = ("--env", "production", "--", "--require-approval", "never")
    code, text, error = slipway_command("deploy", MODEL, *arguments)
    line = f"deploy {MODEL} -c models={MODEL} -c env=production --require-approval never"
    assert (code, ran()) == (0, [line]), error
    assert text.startswith("deploy     new fleet: 2 x ml.g4dn.xlarge start")
    assert error == f"$ cdk {line}\n"
    assert asked == [((MODEL,), "production")]
    deployed(monkeypatch)
    code, text, _ = slipway_command("diff", MODEL, "--env", "production", "--", "--fail")
    assert (code, text) == (7, f"deploy  new: {MODEL}-production does not serve yet\n\n")


def test_what_aws_refuses_is_not_deployed(ran, monkeypatch, slipway_command):
    deployed(monkeypatch, endpoint={"mode": "async", "async_inference": QUEUE})
    code, _, error = slipway_command("deploy", MODEL, "--env", "production")
    assert (code, ran()) == (1, [])
    assert "tiny in `production`: refused by AWS [SW457]" in error


def test_a_destroy_lists_what_is_left(ran, monkeypatch, slipway_command):
    asked = shows(monkeypatch, "slipway.cli.leftovers.leftovers")
    assert slipway_command("destroy", MODEL, "--env", "production", "--", "--fail")[0] == 7
    assert asked == []
    assert slipway_command("destroy", MODEL, "--env", "production")[0] == 0
    assert asked == [((MODEL,), "production")]


def test_another_selection_and_no_cdk_cli_are_refused(ran, slipway_command, tmp_path, monkeypatch):
    error = slipway_command.refused("destroy", MODEL, "--env", "production", "--", "-c", "env=x")
    assert ran() == []
    assert "`slipway destroy` selects the model and the environment itself [SW409]" in error
    (tmp_path / "node_modules" / ".bin" / "cdk").unlink()
    monkeypatch.setenv("PATH", os.fspath(tmp_path))
    error = slipway_command.refused("destroy", MODEL, "--env", "production")
    assert "[SW669]" in error
    assert ran() == []
