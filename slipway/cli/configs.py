"""`slipway validate`, `slipway plan` and `slipway schema`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from slipway.cli.output import (
    DEFAULT_ENVIRONMENT,
    EnvironmentOption,
    JsonOption,
    current_project,
    print_json,
    write_file,
)
from slipway.codes.code import Code
from slipway.config.names import CONFIG_DIRECTORY
from slipway.errors import Problem, UserError

if TYPE_CHECKING:
    from slipway.config.environments import Environment
    from slipway.planning.plan import PlanWarning
    from slipway.project import Project

_NAMED = 4


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command()(validate)
    app.command()(plan)
    app.command()(schema)


def validate(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Models, or patterns such as 'bert-*'. Default: all models."),
    ] = None,
    env: EnvironmentOption = DEFAULT_ENVIRONMENT,
    sarif: Annotated[
        Path | None, typer.Option(help="SARIF file for the problems, for code review services.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Check model configs: every problem of every file, with its place and remedy."""
    from slipway.planning.advice import NO_SOURCE

    project = current_project()
    environment = project.environment(env)
    selected = project.select(names or ["*"]) if project.files or names else []
    problems: list[Problem] = []
    warnings: dict[str, list[PlanWarning]] = {}
    for name in selected:
        found, warnings[name] = _checked(project, name, environment)
        problems += found
    if sarif is not None:
        from slipway.cli.sarif import sarif_log

        try:
            write_file(sarif, json.dumps(sarif_log(problems), indent=2) + "\n", str(sarif))
        except UserError as error:
            problems += error.problems
    if problems:
        raise UserError(problems)
    if as_json:
        shown = {name: [asdict(item) for item in items] for name, items in warnings.items()}
        print_json({"valid": selected, "problems": [], "warnings": shown})
    else:
        count = len(selected)
        without = [n for n, items in warnings.items() if NO_SOURCE in {i.code for i in items}]
        note = (
            f" There is no {environment.artifacts} to deploy there of {_listed(without)}."
            if without
            else ""
        )
        typer.echo(f"{count} model config{'' if count == 1 else 's'} valid for `{env}`.{note}")


def _listed(names: Sequence[str]) -> str:
    """Returns the first of many names, because more would bury the rest of the line."""
    named, left = names[:_NAMED], len(names) - _NAMED
    return ", ".join(named) + (f" and {left} more" if left > 0 else "")


def _checked(
    project: Project, name: str, environment: Environment
) -> tuple[list[Problem], list[PlanWarning]]:
    """Returns the problems of a model, and its warnings in the environment.

    The problems include those in every other environment that its file has a section for.
    """
    problems: dict[Problem, None] = {}
    try:
        # Whether it was published is a question for the deploy, not for the file.
        plan = project.plan(name, environment, allow_unpublished=True)
        overlays = project.config(name, environment.name).config.environments
    except UserError as error:
        return list(error.problems), []
    for other in overlays:
        try:
            project.plan(name, project.environment(other), allow_unpublished=True)
        except UserError as error:
            problems.update(dict.fromkeys(error.problems))
    return list(problems), [item for item in plan.warnings if item.code != "unpublished"]


def plan(
    name: Annotated[str, typer.Argument(help="Name of the model.")],
    env: EnvironmentOption = DEFAULT_ENVIRONMENT,
    allow_unpublished: Annotated[
        bool, typer.Option("--allow-unpublished", help="Plan without a published artifact.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Show the deployment that `cdk synth` renders, with its memory and its cost."""
    from slipway.cli.plan_text import describe_plan

    project = current_project()
    result = project.plan(name, project.environment(env), allow_unpublished=allow_unpublished)
    if as_json:
        print_json(result.as_json())
    else:
        typer.echo(describe_plan(result))


def schema(
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit 1 if the file is stale.")
    ] = False,
) -> None:
    """Write model_configs/schema.json, which editors complete and check configs with."""
    from slipway.config.editor_schema import SCHEMA_FILE, render

    path = current_project().root / CONFIG_DIRECTORY / SCHEMA_FILE
    shown, text = f"{CONFIG_DIRECTORY}/{SCHEMA_FILE}", render()
    stale = not path.is_file() or path.read_text("utf-8") != text
    if check and stale:
        raise UserError.of(
            Code.STALE_SCHEMA, f"{shown} is stale", "Run `slipway schema` and commit the file."
        )
    if stale:
        write_file(path, text, shown)
    typer.echo(f"{shown} {'written' if stale else 'is up to date'}.")
