"""How a draft of `slipway import` becomes files and a report."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from slipway.cli.new_configs import NEXT, next_steps, numbered, planned
from slipway.cli.output import print_json, reported, write_file
from slipway.codes.code import Code
from slipway.config.names import ENVIRONMENTS_FILE
from slipway.errors import Kind, Problem, UserError, dotted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from slipway.config.environments import Environment
    from slipway.config.schema import ModelConfig
    from slipway.importing.draft import Draft, ImportResult
    from slipway.project import Project


def finish(
    made: ImportResult,
    target: Target,
    *,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Checks a draft, writes its files and reports; raises the config's problems."""
    draft, added = made.draft, made.added
    text = draft.render(made.origin)
    if not dry_run:
        _write(draft, text, target)
    try:
        config = _checked(draft, text, target) if dry_run else target.planned()
    except UserError as error:
        if as_json:
            print_json(_report(draft, text, added, target, problems=error.problems))
            raise typer.Exit(1) from None
        if dry_run:
            typer.echo(text, nl=False)
        else:
            typer.echo(f"{target.shown} written; correct what is wrong in it:", err=True)
        _echo_settings(draft, added, err=True)
        raise
    steps = next_steps(config, target.environments)
    titles = list(steps)
    steps[titles[0]][:0] = made.first
    steps[titles[-1]] += made.then
    if as_json:
        print_json(_report(draft, text, added, target, steps=steps))
        return
    if dry_run:
        typer.echo(text, nl=False)
        _echo_settings(draft, added, err=True)
        return
    count = len(draft.guesses)
    guesses = f", with {count} guess{'es' if count != 1 else ''} to review" if count else ""
    typer.echo(f"{target.shown} written{guesses}.")
    _echo_settings(draft, added)
    typer.echo("\n".join(numbered(steps)))


def _echo_settings(draft: Draft, added: Mapping[str, str], *, err: bool = False) -> None:
    """Prints the settings that the config lacks or has otherwise, and those that Slipway adds."""
    for title, settings in (("Left out", draft.left_out), ("Changed", draft.changed)):
        for setting in settings:
            typer.echo(f"{title}: {setting.shown}: {setting.reason}", err=err)
    if added:
        pairs = ", ".join(f"{key}={value}" for key, value in added.items())
        typer.echo(f"Slipway adds to serving.properties: {pairs}.", err=err)
    for name in draft.files:
        typer.echo(f"Copied: {name}", err=err)


def _report(
    draft: Draft,
    text: str,
    added: Mapping[str, str],
    target: Target,
    *,
    steps: Mapping[str, Sequence[str]] | None = None,
    problems: Sequence[Problem] = (),
) -> dict[str, Any]:
    """Returns the report as JSON; the keys are part of the command line's contract."""
    return {
        "file": target.shown,
        "config": text,
        "files": list(draft.files),
        "guesses": [
            {"field": dotted(path), "value": draft.value(path), "reason": guess.reason}
            for path, guess in draft.guesses.items()
        ],
        "left_out": [dataclasses.asdict(setting) for setting in draft.left_out],
        "changed": [dataclasses.asdict(setting) for setting in draft.changed],
        "added": dict(added),
        "next": [
            step if title == NEXT else f"{title}: {step}"
            for title, each in (steps or {}).items()
            for step in each
        ],
        "problems": [problem.as_json() for problem in problems],
    }


@dataclasses.dataclass(frozen=True)
class Target:
    """The place of a new config."""

    project: Project
    environments: Sequence[Environment]
    name: str
    path: Path
    shown: str
    overwrite: bool

    def planned(self) -> ModelConfig:
        """Returns the written config, if every environment that deploys it accepts it."""
        try:
            deploying = self.project.deploying_environments(self.name)
        except UserError:
            deploying = []  # planning reports what is invalid
        return planned(self.project, self.name, deploying or self.environments)


def _write(draft: Draft, text: str, target: Target) -> None:
    """Writes the config and the files beside it; nothing if one of them is there already."""
    root = target.project.root
    there = [name for name in draft.files if (root / name).exists() and not target.overwrite]
    if there:
        raise UserError(
            Problem(
                Code.FILE_EXISTS,
                Kind.STATE,
                f"{name} is there already",
                "Choose another name, move that file, or add `--overwrite`.",
            )
            for name in there
        )
    for name, content in draft.files.items():
        path = root / name
        with reported(name, path):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    with reported(target.shown, target.path):
        target.path.parent.mkdir(exist_ok=True)
    write_file(target.path, text, target.shown)


def _checked(draft: Draft, text: str, target: Target) -> ModelConfig:
    """Checks a draft without writing it; problems have their places in the printed text."""
    from tempfile import TemporaryDirectory

    from slipway.project import Project

    with TemporaryDirectory() as folder:
        project = Project(Path(folder), policies=None)  # their Python is not in the folder
        environments_file = (target.project.root / ENVIRONMENTS_FILE).read_bytes()
        (project.root / ENVIRONMENTS_FILE).write_bytes(environments_file)
        trial = dataclasses.replace(target, project=project, path=project.root / target.shown)
        _write(draft, text, trial)
        return trial.planned()
