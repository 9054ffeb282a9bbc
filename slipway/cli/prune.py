"""`slipway prune`: deletes what nothing refers to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from slipway.cli import output
from slipway.codes.code import Code
from slipway.errors import Kind, Problem, UserError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slipway.pruning import References, Unused


def prune(
    env: output.EnvironmentOption = output.DEFAULT_ENVIRONMENT,
    ref: Annotated[
        list[str] | None,
        typer.Option(help="Branch, tag or commit whose locks count. Default: all refs here."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Delete; without it, only list.")] = False,
    as_json: output.JsonOption = False,
) -> None:
    """List artifacts, job outputs, unfinished uploads and images that nothing refers to."""
    from datetime import UTC, datetime

    from slipway.access import account_errors
    from slipway.pruning import delete, find_references, find_unused

    project, environment, access = output.opened(env)
    with account_errors():
        references = find_references(project.root, ref or [], access)
        unused = find_unused(environment, references, access, datetime.now(UTC))
    if not as_json:
        _echo(unused, references, is_deletion=yes)
    problems: list[Problem] = []
    for item in unused if yes else ():
        with account_errors():
            problems += [_refused(item, reason) for reason in delete(item, environment, access)]
    if problems:
        raise UserError(problems)
    if as_json:
        output.print_json(_document(unused, references, deleted=yes))


def _refused(item: Unused, reason: str) -> Problem:
    return Problem(
        Code.NOT_DELETED,
        Kind.STATE,
        f"{item.name} could not be deleted as a whole: {reason}",
        "Use credentials that may delete it, then run the command again.",
    )


def _echo(unused: Sequence[Unused], references: References, *, is_deletion: bool) -> None:
    for item in unused:
        size = "" if item.size_bytes is None else f", {output.human_size(item.size_bytes)}"
        typer.echo(f"{item.kind}: {item.name}{size}, {item.changed:%Y-%m-%d}")
    refs = ", ".join(references.refs) or "none, since this is no git repository"
    size = output.human_size(_size_bytes(unused))
    typer.echo(
        f"{len(unused)} unused, {size}. Locks counted: the working tree; refs: {refs}. Locks "
        "elsewhere are not seen: run `git fetch --all` first."
    )
    if unused and not is_deletion:
        typer.echo("Nothing was deleted: `--yes` deletes what is listed.")


def _document(unused: Sequence[Unused], references: References, *, deleted: bool) -> dict[str, Any]:
    return {
        "refs": list(references.refs),
        "deleted": deleted,
        "size_bytes": _size_bytes(unused),
        "unused": [
            {
                "kind": item.kind,
                "name": item.name,
                "size_bytes": item.size_bytes,
                "changed": item.changed.isoformat(),
            }
            for item in unused
        ],
    }


def _size_bytes(unused: Sequence[Unused]) -> int:
    return sum(item.size_bytes or 0 for item in unused)
