"""`slipway plan`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from slipway.cli import output
from slipway.codes.code import Code
from slipway.config.names import CI, LOCAL
from slipway.errors import UserError

if TYPE_CHECKING:
    from slipway.config.environments import Environment
    from slipway.project import Project

_DEPLOYED = "deployed"


def plan(
    name: output.ModelArgument,
    env: output.AnyEnvironmentOption = None,
    allow_unpublished: Annotated[
        bool, typer.Option("--allow-unpublished", help="Plan without a published artifact.")
    ] = False,
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            help="Also say what a deploy would do to `deployed`, the endpoint in the account, or "
            "to what a branch, tag or commit deploys.",
            metavar="REF",
        ),
    ] = None,
    as_json: output.JsonOption = False,
) -> None:
    """Show the deployment that `cdk synth` renders, with its memory and its cost."""
    from slipway.cli.plan_text import describe_plan
    from slipway.planning.plan_json import plan_as_json

    project = output.current_project()
    environment = project.environment(env) if env else plan_environment(project, name)
    result = project.plan(name, environment, allow_unpublished=allow_unpublished)
    found = None
    if against == _DEPLOYED:
        from slipway.access import account_errors, open_access
        from slipway.operations.against import compare_with_deployed

        access = open_access(environment, project.root)
        with account_errors():
            found = compare_with_deployed(result, access)
    elif against is not None:
        from slipway.operations.against import compare_with_commit

        found = compare_with_commit(project, result, against, allow_unpublished=allow_unpublished)
    if as_json:
        content = plan_as_json(result)
        output.print_json(content if found is None else {**content, "consequences": asdict(found)})
        return
    typer.echo(describe_plan(result))
    if found is not None:
        typer.echo("\n" + output.as_lines(list(found.as_rows())))


def plan_environment(project: Project, name: str) -> Environment:
    """Returns the environment to plan for: the local one, or the only one that deploys the model.

    CI's environment is taken if no other deploys the model. Raises `UserError` if several others
    do.
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
