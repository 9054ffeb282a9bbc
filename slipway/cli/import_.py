"""`slipway import`: a model config of what somebody has already."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from slipway.cli import new_configs, output
from slipway.codes.code import Code
from slipway.config.names import ENVIRONMENTS_FILE
from slipway.errors import Kind, Problem, UserError, dotted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from slipway.config.environments import Environment
    from slipway.config.schema import ModelConfig
    from slipway.importing.draft import Draft, ImportResult
    from slipway.project import Project


def import_config(
    name: Annotated[str, typer.Argument(help="Name of the model and of its file.")],
    properties: Annotated[
        Path | None, typer.Option(help="Folder with serving.properties of an LMI model.")
    ] = None,
    call: Annotated[
        Path | None,
        typer.Option(help="JSON file with the keyword arguments of a notebook's call."),
    ] = None,
    hub: Annotated[
        str | None,
        typer.Option(
            help="Checkpoint: OWNER/NAME[@REVISION] of the Hugging Face Hub, or a folder."
        ),
    ] = None,
    endpoint: Annotated[
        str | None, typer.Option(help="Name of an endpoint that is there. Reads AWS only.")
    ] = None,
    region: Annotated[
        str | None, typer.Option(help="Region of the endpoint. Default: the shell's.")
    ] = None,
    instance: Annotated[
        str | None, typer.Option(help="Instance type, such as ml.g5.2xlarge.")
    ] = None,
    weights: Annotated[str | None, typer.Option(help=f"{new_configs.WEIGHTS_FORMS}.")] = None,
    family: Annotated[
        str | None, typer.Option(help="Architecture; else the checkpoint's name says it.")
    ] = None,
    parameters: Annotated[
        int | None, typer.Option(help="Number of weights; else the checkpoint's name says it.")
    ] = None,
    framework: Annotated[
        str | None, typer.Option(help="Image, such as djl-lmi. Default: one that suits.")
    ] = None,
    version: Annotated[
        str | None, typer.Option(help="Version of the image. Default: the newest that suits.")
    ] = None,
    latency_milliseconds: Annotated[
        int | None, typer.Option(help="Latency objective, 99th percentile.")
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace files that are there already.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the config and write nothing.")
    ] = False,
    as_json: output.JsonOption = False,
) -> None:
    """Write a model config of a model that is deployed in another way.

    Each guess has a comment in the config. Settings that the config cannot say are listed.
    """
    from slipway.importing.draft import KnownFacts
    from slipway.importing.sources import Importer

    sources = {"--properties": properties, "--call": call, "--hub": hub, "--endpoint": endpoint}
    named = [option for option, value in sources.items() if value is not None]
    if len(named) != 1:
        raise output.wrong_options(
            f"{' and '.join(named)} name several sources"
            if named
            else "there is nothing to import",
            f"Give one of {', '.join(sources)}.",
        )
    if region is not None and endpoint is None:
        raise output.wrong_options("`--region` goes with `--endpoint`", "Leave `--region` out.")
    project = output.current_project()
    path, shown = new_configs.new_file(
        project.root, name, overwrite=overwrite or dry_run, otherwise="add `--overwrite`"
    )
    environments = [project.environment(each) for each in project.environment_names]
    given = KnownFacts(
        name,
        instance=instance,
        framework=framework,
        version=version,
        family=family,
        parameters=parameters,
        latency_milliseconds=latency_milliseconds,
    )
    importer = Importer(project.root, environments, given, weights, _ask)
    if properties is not None:
        made = importer.of_properties(properties)
    elif call is not None:
        made = importer.of_call(call)
    elif endpoint is not None:
        made = importer.of_endpoint(endpoint, region)
    else:
        made = importer.of_checkpoint(hub or "")
    target = Target(project, environments, name, path, shown, overwrite)
    finish(made, target, dry_run=dry_run, as_json=as_json)


def _ask(missing: Sequence[str], untold: str) -> dict[str, Any]:
    """Asks on a terminal for facts; `untold` is why the source lacks them, as half a sentence."""
    from slipway.config.starter import parse_weights

    if not sys.stdin.isatty():
        why = f"{untold}; " if untold else ""
        raise UserError.of(
            Code.NO_TERMINAL,
            f"{why}some options are missing, and there is no terminal to ask for them",
            f"Give {', '.join(map(new_configs.flag, missing))}.",
        )
    answers: dict[str, Any] = {}
    for name in missing:
        answer = typer.prompt(
            new_configs.QUESTIONS[name], type=int if name == "parameters" else str
        )
        answers[name] = parse_weights(answer) if name == "weights" else answer
    return answers


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
            output.print_json(_report(draft, text, added, target, problems=error.problems))
            raise typer.Exit(1) from None
        if dry_run:
            typer.echo(text, nl=False)
        else:
            typer.echo(f"{target.shown} written; correct what is wrong in it:", err=True)
        _echo_settings(draft, added, err=True)
        raise
    steps = new_configs.next_steps(config, target.environments)
    titles = list(steps)
    steps[titles[0]][:0] = made.first
    steps[titles[-1]] += made.then
    if as_json:
        output.print_json(_report(draft, text, added, target, steps=steps))
        return
    if dry_run:
        typer.echo(text, nl=False)
        _echo_settings(draft, added, err=True)
        return
    count = len(draft.guesses)
    guesses = f", with {count} guess{'es' if count != 1 else ''} to review" if count else ""
    typer.echo(f"{target.shown} written{guesses}.")
    _echo_settings(draft, added)
    typer.echo("\n".join(new_configs.numbered(steps)))


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
            step if title == new_configs.NEXT else f"{title}: {step}"
            for title, each in (steps or {}).items()
            for step in each
        ],
        "problems": [problem.as_json() for problem in problems],
    }


@dataclasses.dataclass(frozen=True)
class Target:
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
        return new_configs.planned(self.project, self.name, deploying or self.environments)


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
        with output.reported(name, path):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    with output.reported(target.shown, target.path):
        target.path.parent.mkdir(exist_ok=True)
    output.write_file(target.path, text, target.shown)


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
