"""`slipway upgrade --check`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated

import typer

import slipway
from slipway.cli import output
from slipway.codes.code import Code
from slipway.errors import Kind, Problem, UserError

if TYPE_CHECKING:
    from pathlib import Path

    from slipway.operations.reviewing import ChangeReview


def upgrade(
    version: Annotated[
        str | None,
        typer.Argument(
            help="Version of the package index, path or URL of a wheel, or path of a checkout. "
            "Default: what the project pins.",
        ),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Say what the version does to every stack.")
    ] = False,
    base: Annotated[
        str | None,
        typer.Option("--from", help="Version before the upgrade. Default: the installed one."),
    ] = None,
    env: output.AnyEnvironmentOption = None,
    as_json: output.JsonOption = False,
    allow_destructive: output.DestructiveOption = False,
) -> None:
    """Say what another version of Slipway replaces, rolls, widens or changes in each stack."""
    from slipway.cli.review import verdicts
    from slipway.operations.upgrading import check_upgrade, environments_of
    from slipway.operations.versions import installed, version_of

    if not check:
        raise _wrong("installs nothing, and needs `--check`")
    project = output.current_project()
    environments = environments_of(project, env)
    if version is None and base is None:
        version = _pinned(project.root)
    before = installed() if base is None else version_of(project.root, base)
    after = installed() if version is None else version_of(project.root, version)
    found = check_upgrade(project, before, after, environments)
    problems = [*found.problems, *verdicts(found, allow_destructive=allow_destructive)]
    if as_json:
        shown = {"version": after.name, "problems": [each.as_json() for each in problems]}
        output.print_json(asdict(found) | shown)
        raise typer.Exit(1 if problems else 0)
    typer.echo(f"From slipway {before.name} to slipway {after.name}\n")
    typer.echo("\n\n".join(_groups(found)) or "No stack changes.")
    if problems:
        raise UserError(problems)


def _wrong(what: str) -> UserError:
    remedy = "Write `slipway upgrade --check VERSION`, or `slipway upgrade --check --from VERSION`."
    return output.wrong_options(f"`slipway upgrade` {what}", remedy)


def _pinned(root: Path) -> str:
    """Returns the version that the project pins, if it is another than the installed one."""
    from slipway.pins import pinned_versions

    pins = pinned_versions(root)
    if len(versions := sorted({*pins.values()})) > 1:
        raise UserError(
            Problem(
                Code.TWO_VERSIONS_PINNED,
                Kind.STATE,
                f"this file pins slipway {each}; the project pins {' and '.join(versions)}",
                "Pin one version everywhere, or name the version.",
                location=place,
            )
            for place, each in pins.items()
        )
    if not versions or versions[0] == slipway.__version__:
        raise _wrong("names no version, and the project pins no other than the installed one")
    return versions[0]


def _groups(found: ChangeReview) -> Iterator[str]:
    from slipway.cli.review_text import review_rows

    groups: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for each in found.models:
        told = f"{each.verdict}: {each.reason}".rstrip(": ")
        rows = [("verdict", told), *review_rows(replace(each, warnings=()))]
        rows += [("warning", warning) for warning in each.warnings]
        same = tuple((label, text.replace(each.model, "NAME")) for label, text in rows)
        groups.setdefault((("environment", each.environment), *same), []).append(each.model)
    for (environment, *rows), names in groups.items():
        title = f"{', '.join(names)} in `{environment[1]}`"
        shown = rows if len(names) > 1 else [(a, b.replace("NAME", names[0])) for a, b in rows]
        yield f"{title}\n{output.as_lines([(f'  {label}', text) for label, text in shown])}"
