"""`slipway validate`, `slipway plan` and `slipway schema`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from slipway.cli.output import (
    AnyEnvironmentOption,
    JsonOption,
    current_project,
    print_json,
    write_file,
)
from slipway.codes.code import Code
from slipway.config.names import CI, CONFIG_DIRECTORY, LOCAL
from slipway.errors import UserError

if TYPE_CHECKING:
    from slipway.config.environments import Environment
    from slipway.project import Checked, Project

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
    env: AnyEnvironmentOption = None,
    sarif: Annotated[
        Path | None, typer.Option(help="SARIF file for the problems, for code review services.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Check model configs where they are deployed: every problem, with its place and remedy."""
    from slipway.planning.advice import NO_SOURCE

    project = current_project()
    environments = [
        project.environment(each) for each in ([env] if env else project.environment_names)
    ]
    selected = project.select(names or ["*"]) if project.files or names else []
    checked = {name: project.check(name, environments) for name in selected}
    problems = [problem for found in checked.values() for problem in found.problems]
    if sarif is not None:
        from slipway.cli.sarif import sarif_log

        try:
            write_file(sarif, json.dumps(sarif_log(problems), indent=2) + "\n", str(sarif))
        except UserError as error:
            problems += error.problems
    if problems:
        raise UserError(problems)
    # Whether it was published is a question for the deploy, not for the file.
    warnings = {
        name: [item for item in found.warnings if item.code != "unpublished"]
        for name, found in checked.items()
    }
    if as_json:
        shown = {name: [asdict(item) for item in items] for name, items in warnings.items()}
        deploying = {name: list(found.deploying) for name, found in checked.items()}
        print_json(
            {"valid": selected, "environments": deploying, "problems": [], "warnings": shown}
        )
        return
    without = [n for n, items in warnings.items() if NO_SOURCE in {i.code for i in items}]
    note = f" There is {_nothing(environments)} to deploy there of {_listed(without)}."
    typer.echo(f"{_valid(env, environments, checked)}{note if without else ''}")


def _valid(
    env: str | None, environments: Sequence[Environment], checked: Mapping[str, Checked]
) -> str:
    """Returns how many configs are valid, and in which environments."""
    count = f"{len(checked)} model config{'' if len(checked) == 1 else 's'} valid"
    if env is not None:
        return f"{count} for `{env}`."
    deployed = {
        each.name: sum(each.name in found.deploying for found in checked.values())
        for each in environments
    }
    parts = [f"{number} for `{name}`" for name, number in deployed.items() if number]
    return f"{count}: {', '.join(parts)}." if parts else f"{count}."


def _nothing(environments: Sequence[Environment]) -> str:
    kinds = dict.fromkeys(environment.artifacts for environment in environments)
    return f"no {' or '.join(kinds)}"


def _listed(names: Sequence[str]) -> str:
    """Returns the first of many names, because more would bury the rest of the line."""
    named, left = names[:_NAMED], len(names) - _NAMED
    return ", ".join(named) + (f" and {left} more" if left > 0 else "")


def plan(
    name: Annotated[str, typer.Argument(help="Name of the model.")],
    env: AnyEnvironmentOption = None,
    allow_unpublished: Annotated[
        bool, typer.Option("--allow-unpublished", help="Plan without a published artifact.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Show the deployment that `cdk synth` renders, with its memory and its cost."""
    from slipway.cli.plan_text import describe_plan

    project = current_project()
    environment = project.environment(env) if env else _only_environment(project, name)
    result = project.plan(name, environment, allow_unpublished=allow_unpublished)
    if as_json:
        print_json(result.as_json())
    else:
        typer.echo(describe_plan(result))


def _only_environment(project: Project, name: str) -> Environment:
    """Returns the environment to plan for: the local one, or the only one that deploys the model.

    CI's environment is taken if no other deploys the model.

    Raises:
        UserError: several others deploy it.
    """
    local = project.environment(LOCAL if LOCAL in project.environment_names else _first(project))
    try:
        deploying = project.deploying_environments(name)
    except UserError:
        return local  # its plan has the whole report
    if not deploying or local in deploying:
        return local
    # Nobody deploys to the environment that CI synthesises for.
    deploying = [each for each in deploying if each.name != CI] or deploying
    if len(deploying) > 1:
        names = ", ".join(each.name for each in deploying)
        raise UserError.of(
            Code.SEVERAL_ENVIRONMENTS,
            f"`{local.name}` deploys no {local.artifacts} of {name}, and several environments do",
            f"Add `--env NAME` with one of them: {names}.",
        )
    (only,) = deploying
    typer.echo(f"Planned for `{only.name}`, the only environment that deploys {name}.", err=True)
    return only


def _first(project: Project) -> str:
    return next(iter(project.environment_names), LOCAL)


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
