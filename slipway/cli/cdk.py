"""`slipway deploy|diff|destroy`: the CDK CLI, with the models selected and the verdict beside it.

They add nothing that the CDK CLI cannot do. What they run is printed.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from typing import TYPE_CHECKING, Annotated

import typer

from slipway.cli import output
from slipway.codes.code import Code
from slipway.errors import UserError

if TYPE_CHECKING:
    from slipway.access import Access
    from slipway.config.environments import Environment
    from slipway.project import Project

_Rest = Annotated[
    list[str] | None, typer.Argument(help="Options of the CDK CLI, after `--`.", metavar="[-- ...]")
]


def deploy(
    name: output.ModelArgument,
    rest: _Rest = None,
    env: output.EnvironmentOption = output.DEFAULT_ENVIRONMENT,
) -> None:
    """Say what the deploy does, run `cdk deploy`, and show what is served then."""
    from slipway.cli.status import status
    from slipway.planning.consequences import Consequence

    project, environment, access = output.opened(env)
    verdict = _say_verdict(project, name, environment, access)
    if verdict is Consequence.REFUSED:
        raise UserError.of(
            Code.REFUSED_CHANGE,
            f"{name} in `{env}`: {verdict}",
            f"Take the edit back, or run `slipway destroy {name} --env {env}` first.",
        )
    code = _run(project, environment, "deploy", name, rest or [])
    if code == 0:
        status(name, env=env, lines=0, as_json=False)
    raise typer.Exit(code)


def diff(
    name: output.ModelArgument,
    rest: _Rest = None,
    env: output.EnvironmentOption = output.DEFAULT_ENVIRONMENT,
) -> None:
    """Say what a deploy would do, and run `cdk diff`."""
    project, environment, access = output.opened(env)
    _say_verdict(project, name, environment, access)
    raise typer.Exit(_run(project, environment, "diff", name, rest or []))


def destroy(
    name: output.ModelArgument,
    rest: _Rest = None,
    env: output.EnvironmentOption = output.DEFAULT_ENVIRONMENT,
) -> None:
    """Run `cdk destroy`, and list what is left."""
    from slipway.cli.leftovers import leftovers

    project = output.current_project()
    code = _run(project, project.environment(env), "destroy", name, rest or [])
    if code == 0:
        leftovers(name, env=env, as_json=False)
    raise typer.Exit(code)


def _say_verdict(
    project: Project, name: str, environment: Environment, access: Access
) -> str | None:
    """Prints what a deploy does to what is deployed; returns the verdict, None for a first one."""
    from slipway.access import account_errors
    from slipway.operations.against import compare_with_deployed

    plan = project.plan(name, environment)
    try:
        with account_errors():
            found = compare_with_deployed(plan, access)
    except UserError as error:
        if [each.code for each in error.problems] != [Code.NOT_DEPLOYED]:
            raise
        typer.echo(
            output.as_lines([("deploy", f"new: {plan.endpoint_name} does not serve yet")]) + "\n"
        )
        return None
    typer.echo(output.as_lines(list(found.as_rows())) + "\n")
    return found.verdict


def _run(
    project: Project, environment: Environment, command: str, name: str, rest: list[str]
) -> int:
    from slipway.access import local_variables

    if any(each.startswith(("env=", "models=")) for each in rest):
        raise output.wrong_options(
            f"`slipway {command}` selects the model and the environment itself",
            f"Leave `env=` and `models=` out, and write `slipway {command} NAME --env NAME`.",
        )
    installed = project.root / "node_modules" / ".bin"
    program = shutil.which("cdk", path=str(installed)) or shutil.which("cdk")
    if program is None:
        raise UserError.of(
            Code.NO_CDK,
            "the CDK CLI is not installed: there is no `cdk`",
            "Run `npm ci` in the project, or `make setup` in Slipway's checkout.",
        )
    context = ["-c", f"models={name}", "-c", f"env={environment.name}"]
    arguments = [command, name, *context, *rest]
    typer.echo(f"$ cdk {shlex.join(arguments)}", err=True)
    variables: dict[str, str | None] = dict(os.environ)
    if environment.is_local:
        variables |= local_variables(project.root, environment.region)
    given = {key: value for key, value in variables.items() if value is not None}
    line = [program, *arguments]
    return subprocess.run(line, cwd=project.root, env=given, check=False).returncode  # noqa: S603
