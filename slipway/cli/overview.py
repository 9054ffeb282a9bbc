"""`slipway` without a command: the state of this project, and the next step."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from slipway.cli.colours import heading
from slipway.errors import UserError

if TYPE_CHECKING:
    from slipway.project import Project

_HELP = "`slipway --help` lists the commands."


def print_overview() -> None:
    """Prints what the project has, and one command to go on with."""
    from slipway.project import Project

    try:
        project = Project.find(Path.cwd())
    except UserError as error:
        (problem,) = error.problems
        typer.echo(
            f"{problem.message}\n    {problem.remedy}\n\n`slipway --help` lists the commands."
        )
        return
    names = list(project.files)
    unpublished = [name for name in names if not project.lock_path(name).is_file()]
    models = "1 model" if len(names) == 1 else f"{len(names)} models"
    rest = f", {len(unpublished)} of them never published" if unpublished else ""
    runs = _embedded_aws_runs(project)
    typer.echo(f"{project.root}: {models}{rest}")
    typer.echo(f"The embedded AWS is {'running' if runs else 'not running'}.")
    typer.echo(f"\n{heading('Next:')} {_next_step(names, runs=runs)}")
    typer.echo(_HELP)


def _next_step(names: list[str], *, runs: bool) -> str:
    if not names:
        return "slipway init NAME --weights DIRECTORY"
    if not runs:
        return "slipway local start"
    return f"slipway list, or slipway publish {names[0]} and cdk deploy {names[0]}"


def _embedded_aws_runs(project: Project) -> bool:
    from slipway.embedded_aws import control
    from slipway.embedded_aws.errors import LocalAwsError

    try:
        return control.status(project.root) is not None
    except LocalAwsError:
        return False
