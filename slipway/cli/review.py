"""`slipway review`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated

import typer

from slipway.cli import output
from slipway.codes.code import Code
from slipway.errors import Kind, Problem, UserError

if TYPE_CHECKING:
    from slipway.operations.reviewing import ChangeReview
    from slipway.project import Project


def review(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="Names of models, or patterns. Default: all.", autocompletion=output.model_names
        ),
    ] = None,
    base: Annotated[
        str | None,
        typer.Option(help="Branch, tag or commit to compare with.", metavar="REF"),
    ] = None,
    live: Annotated[
        bool, typer.Option("--live", help="Compare with the endpoints in the account instead.")
    ] = False,
    env: output.AnyEnvironmentOption = None,
    templates: Annotated[
        bool,
        typer.Option(
            "--templates", help="Also show how the templates differ, which takes some seconds."
        ),
    ] = False,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print a comment for a merge request.")
    ] = False,
    as_json: output.JsonOption = False,
    allow_destructive: output.DestructiveOption = False,
) -> None:
    """Say what a change does to requests, cost, memory and rights, for each model it touches."""
    from slipway.cli.review_text import as_markdown, as_text

    if (base is None) is not live:
        raise _wrong("takes either `--base REF` or `--live`")
    if live and (env is None or templates):
        raise _wrong("with `--live` needs `--env`, and has no `--templates`")
    if markdown and as_json:
        raise _wrong("prints either Markdown or JSON")
    project = output.current_project()
    diffs: Mapping[str, str] = {}
    if base is None:
        found = _live(project, names or [], env or "")
    else:
        found, diffs = _with_base(project, names or [], base, env, templates=templates)
    problems = [*found.problems, *verdicts(found, allow_destructive=allow_destructive)]
    if as_json:
        shown = {"problems": [each.as_json() for each in problems], "templates": diffs}
        output.print_json(asdict(found) | shown)
        raise typer.Exit(1 if problems else 0)
    typer.echo(as_markdown(found, diffs) if markdown else as_text(found, diffs))
    if problems:
        raise UserError(problems)


def _wrong(what: str) -> UserError:
    return output.wrong_options(
        f"`slipway review` {what}",
        "Write `slipway review --base main`, or `slipway review --live --env NAME`.",
    )


def _with_base(
    project: Project, names: list[str], ref: str, env: str | None, *, templates: bool
) -> tuple[ChangeReview, Mapping[str, str]]:
    from slipway.operations.against import project_at
    from slipway.operations.reviewing import review_change
    from slipway.operations.templates import templates_difference
    from slipway.planning.review import NEW, REMOVED, RENAMED, UNKNOWN

    diffs, problems = {}, list[Problem]()
    with project_at(project, ref, is_run=templates) as base:
        found = review_change(project, base, ref, names, env)
        # Under one name only, the whole template differs.
        partial = (NEW, REMOVED, RENAMED, UNKNOWN)
        compared = [each for each in found.models if each.verdict not in partial]
        for name in dict.fromkeys(each.environment for each in compared) if templates else ():
            models = [each.model for each in compared if each.environment == name]
            try:
                diffs[name] = templates_difference(base.root, project.root, name, models)
            except UserError as error:  # the review is worth reading without them
                problems += error.problems
    return replace(found, problems=(*found.problems, *problems)), diffs


def _live(project: Project, names: list[str], env: str) -> ChangeReview:
    from slipway.access import account_errors, open_access
    from slipway.operations.reviewing import deploys, review_deployed

    environment = project.environment(env)
    selected = project.select(names) if names else list(project.files)
    selected = [name for name in selected if deploys(project, name, env)]
    with account_errors():
        access = open_access(environment, project.root)
        return review_deployed(project, selected, access, environment)


def verdicts(found: ChangeReview, *, allow_destructive: bool) -> Iterator[Problem]:
    for each in found.models:
        if each.is_refused:
            code, remedy = Code.REFUSED_CHANGE, "Take the edit back, or destroy the stack."
        elif each.is_destructive and not allow_destructive:
            code = Code.DESTRUCTIVE_CHANGE
            remedy = "If that is meant, run the command with `--allow-destructive`."
        else:
            continue
        told = f"{each.model} in `{each.environment}`: {each.verdict}, {each.reason}"
        yield Problem(code, Kind.STATE, told, remedy)
