"""`slipway` without a command, and the groups of `slipway --help`, each command with an example."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer
from typer.core import TyperGroup

from slipway.cli.output import heading
from slipway.errors import UserError

if TYPE_CHECKING:
    from slipway.project import Project

_HELP = "`slipway --help` lists the commands."


def print_overview() -> None:
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


JOURNEYS: Final[Mapping[str, Mapping[str, str]]] = {
    "Write a config": {
        "new": "slipway new models",
        "init": "slipway init ranker --weights models/ranker",
        "import": "slipway import ranker --endpoint ranker-prod",
        "fit": "slipway fit ranker --rate 2 --p99 20000",
        "triton-repository": "slipway triton-repository ranker --graph model.onnx",
    },
    "Check it": {
        "validate": "slipway validate",
        "plan": "slipway plan ranker --env production",
        "cost": "slipway cost ranker --env production",
        "simulate": "slipway simulate ranker --traffic day.csv --service-time 80",
        "review": "slipway review --base main",
        "upgrade": "slipway upgrade --check 0.2.0",
        "schema": "slipway schema --check",
        "explain": "slipway explain SW304",
    },
    "Publish and deploy": {
        "publish": "slipway publish ranker --env production",
        "preflight": "slipway preflight ranker --env production",
        "diff": "slipway diff ranker --env production",
        "deploy": "slipway deploy ranker --env production",
        "iam": "slipway iam ranker --env production",
    },
    "Call it and watch it": {
        "invoke": "slipway invoke ranker --text 'a question'",
        "bench": "slipway bench ranker --env production --design mine.yaml",
        "status": "slipway status ranker --env production",
        "list": "slipway list",
        "logs": "slipway logs ranker --follow",
        "dashboard": "slipway dashboard ranker --html ranker.html --hours 24",
        "shadow-report": "slipway shadow-report ranker --since 2h",
        "ui": "slipway ui",
    },
    "Take it away": {
        "destroy": "slipway destroy ranker --env production",
        "leftovers": "slipway leftovers ranker --env production",
        "prune": "slipway prune --env production",
    },
    "The embedded AWS": {"local": "slipway local start"},
}


class Journeys(TyperGroup):
    # Any: classes of Click, which Typer has a copy of.
    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002  # Click's
        for title, examples in JOURNEYS.items():
            rows = []
            for name, example in examples.items():
                command = self.commands[name]
                rows += [(name, command.get_short_help_str(limit=1000)), ("", f"$ {example}")]
            with formatter.section(title):
                formatter.write_dl(rows)
