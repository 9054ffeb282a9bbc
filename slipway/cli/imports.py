"""`slipway import`: a model config of what somebody has already."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from slipway.cli.new_configs import flag, new_file, next_steps, planned
from slipway.cli.output import JsonOption, current_project, print_json, reported, write_file
from slipway.codes.code import Code
from slipway.config.names import CONFIG_DIRECTORY, ENVIRONMENTS_FILE
from slipway.errors import Kind, Problem, UserError, dotted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from slipway.config.environments import Environment
    from slipway.config.schema import ModelConfig
    from slipway.importing.draft import Draft, FieldName, Given, Guess
    from slipway.importing.lmi.source import LmiSource
    from slipway.importing.weights import WeightsPlace
    from slipway.project import Project

_WEIGHTS_FORMS = "hub:OWNER/NAME@REVISION, s3://BUCKET/PREFIX/ or a directory"
_QUESTIONS = {
    "weights": f"Weights ({_WEIGHTS_FORMS})",
    "family": "Architecture of the network",
    "parameters": "Number of its weights",
    "instance": "Hosting instance type",
}
_NUMBERS = ("parameters",)


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("import")(import_config)


def import_config(
    name: Annotated[str, typer.Argument(help="Name of the model and of its file.")],
    properties: Annotated[
        Path | None, typer.Option(help="Folder with serving.properties of an LMI model.")
    ] = None,
    call: Annotated[
        Path | None,
        typer.Option(help="JSON file with the keyword arguments of a notebook's call."),
    ] = None,
    instance: Annotated[
        str | None, typer.Option(help="Instance type, such as ml.g5.2xlarge.")
    ] = None,
    weights: Annotated[str | None, typer.Option(help=f"{_WEIGHTS_FORMS}.")] = None,
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
    as_json: JsonOption = False,
) -> None:
    """Write a model config from the files of a model that is deployed in another way.

    Each guess has a comment in the config. Settings that the config cannot say are listed.
    """
    from slipway.importing.draft import Given

    sources = {"--properties": properties, "--call": call}
    named = [option for option, value in sources.items() if value is not None]
    if len(named) != 1:
        raise UserError.of(
            Code.WRONG_OPTIONS,
            f"{' and '.join(named)} name two sources" if named else "there is nothing to import",
            f"Give one of {', '.join(sources)}.",
        )
    project = current_project()
    path, shown = new_file(
        project.root, name, overwrite=overwrite or dry_run, otherwise="add `--overwrite`"
    )
    environments = [project.environment(each) for each in project.environment_names]
    given = Given(
        name,
        instance=instance,
        framework=framework,
        version=version,
        family=family,
        parameters=parameters,
        latency_milliseconds=latency_milliseconds,
    )
    target = _Target(project, environments, name, path, shown, overwrite)
    if properties is not None:
        made = _of_properties(properties, given, weights, target)
    elif call is not None:
        made = _of_call(call, given, weights, target)
    _finish(made, target, dry_run=dry_run, as_json=as_json)


@dataclasses.dataclass(frozen=True)
class _Made:
    """The result of an import.

    Args:
        draft: the config.
        origin: what it was made of.
        added: keys of serving.properties that Slipway writes in addition.
    """

    draft: Draft
    origin: str
    added: Mapping[str, str]


def _of_properties(directory: Path, given: Given, weights: str | None, target: _Target) -> _Made:
    from slipway.importing.lmi.source import read_directory

    source = read_directory(directory, directory.as_posix().rstrip("/"))
    return _lmi_made(source, given, weights, target)


def _lmi_made(source: LmiSource, given: Given, weights: str | None, target: _Target) -> _Made:
    from slipway.importing.lmi.images import suitable_draft
    from slipway.importing.lmi.weights import weights_place

    place = weights_place(source, target.project.root)
    given, guesses = _completed(given, weights, place)
    made = suitable_draft(source, given, guesses, _reference(target.environments))
    return _Made(made.draft, source.origin, made.added)


def _of_call(path: Path, given: Given, weights: str | None, target: _Target) -> _Made:
    """Returns the config of a notebook's call: of an LMI image, or of any other image.

    Raises:
        UserError: the call names no image, and no option does.
    """
    from slipway.importing.call import read_call
    from slipway.importing.custom.drafts import custom_draft
    from slipway.importing.custom.weights import weights_place
    from slipway.importing.lmi.images import image_of
    from slipway.importing.lmi.variables import source_of_call

    call = read_call(path, path.as_posix())
    image = image_of(call.image_uri or "")
    given = dataclasses.replace(
        given, instance=given.instance or call.instance, endpoint=call.endpoint, tags=call.tags
    )
    if image is not None or (call.image_uri is None and given.framework is not None):
        framework, version = image or (given.framework, given.version)
        given = dataclasses.replace(
            given, framework=given.framework or framework, version=given.version or version
        )
        return _lmi_made(source_of_call(call), given, weights, target)
    if call.image_uri is None:
        raise UserError.of(
            Code.IMPORT_NO_IMAGE,
            f"{call.origin} has no `image_uri`: the SDK chose the image",
            "Add `image_uri` to the file: the notebook prints it with `model.image_uri` after the "
            "deploy. For an LMI image, give `--framework` and `--version` instead.",
        )
    given, guesses = _completed(given, weights, weights_place(call))
    return _Made(custom_draft(call, given, guesses), call.origin, {})


def _completed(
    given: Given, weights: str | None, place: WeightsPlace
) -> tuple[Given, dict[FieldName, Guess]]:
    """Returns all facts that a config needs; asks on a terminal for those that nothing tells.

    Args:
        given: the options.
        weights: the option `--weights`.
        place: the weights that the source names.

    Raises:
        UserError: facts are missing, and there is no terminal.
    """
    from slipway.config.starter import parse_weights
    from slipway.importing.networks import guessed_network

    guesses: dict[FieldName, Guess] = {}
    section = place.section
    if weights is not None:
        section = parse_weights(weights)
    elif section is None and place.repository is not None:
        section, guesses = _present_commit(place)
    given, network = guessed_network(
        dataclasses.replace(given, weights=section), _checkpoint_name(section), place.name
    )
    missing = [name for name in _QUESTIONS if getattr(given, name) is None]
    if missing and not sys.stdin.isatty():
        why = f"{place.missing}; " if "weights" in missing and place.missing else ""
        raise UserError.of(
            Code.NO_TERMINAL,
            f"{why}some options are missing, and there is no terminal to ask for them",
            f"Give {', '.join(map(flag, missing))}.",
        )
    answers: dict[str, Any] = {}
    for name in missing:
        answer = typer.prompt(_QUESTIONS[name], type=int if name in _NUMBERS else str)
        answers[name] = parse_weights(answer) if name == "weights" else answer
    return dataclasses.replace(given, **answers), guesses | network


def _checkpoint_name(section: Mapping[str, Any] | None) -> str:
    """Returns the repository, the prefix in S3 or the folder of a checkpoint."""
    names = [text for key, text in (section or {}).items() if key in ("repository", "uri", "path")]
    return str(names[0]) if names else ""


def _present_commit(place: WeightsPlace) -> tuple[dict[str, str], dict[FieldName, Guess]]:
    """Asks the Hub for the present commit of weights whose commit the source does not name.

    Raises:
        UserError: the Hub does not answer, or does not have it.
    """
    from slipway.importing.draft import Guess
    from slipway.publishing.hub_facts import DEFAULT_BRANCH, find_commit

    repository, branch = place.repository or "", place.revision or DEFAULT_BRANCH
    try:
        commit = find_commit(repository, branch)
    except UserError as error:
        raise UserError(
            dataclasses.replace(
                problem,
                message=f"{place.missing}: {problem.message}",
                remedy=f"{problem.remedy} Or name the commit: `--weights hub:{repository}@COMMIT`.",
                field=(),
            )
            for problem in error.problems
        ) from None
    guess = Guess(f"`{place.name}` names no commit. This is the present one of `{branch}`.")
    section = {"source": "hub", "repository": repository, "revision": commit}
    return section, {("artifacts", "weights", "revision"): guess}


def _reference(environments: Sequence[Environment]) -> Environment:
    """Returns the environment whose rules decide the guesses: the first that deploys releases."""
    releases = (each for each in environments if each.artifacts == "release")
    return next(releases, environments[0])


def _finish(
    made: _Made,
    target: _Target,
    *,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Checks a draft, writes its files and reports.

    Args:
        made: the result of the import.
        target: the project, and the place of the config.
        dry_run: whether the config is printed, and nothing is written.
        as_json: whether the report is JSON.

    Raises:
        UserError: a file is there already, or the config has problems.
    """
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
    for step in steps:
        typer.echo(step)


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
    target: _Target,
    *,
    steps: Sequence[str] = (),
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
        "next": list(steps),
        "problems": [problem.as_json() for problem in problems],
    }


@dataclasses.dataclass(frozen=True)
class _Target:
    """The place of a new config.

    Args:
        project: the project.
        environments: its environments.
        name: name of the model.
        path: the config.
        shown: the config's name in messages.
        overwrite: whether files that are there already are replaced.
    """

    project: Project
    environments: Sequence[Environment]
    name: str
    path: Path
    shown: str
    overwrite: bool

    def planned(self) -> ModelConfig:
        """Returns the written config, if every environment that deploys it accepts it."""
        return _planned(self.project, self)


def _write(draft: Draft, text: str, target: _Target) -> None:
    """Writes the config and the files beside it; nothing if one of them is there already.

    Raises:
        UserError: a file is there, or cannot be written.
    """
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


def _checked(draft: Draft, text: str, target: _Target) -> ModelConfig:
    """Returns the config of a draft that is not written, if every environment accepts it.

    Raises:
        UserError: every problem, with its place in the printed text.
    """
    from tempfile import TemporaryDirectory

    from slipway.project import Project

    with TemporaryDirectory() as folder:
        project = Project(Path(folder))
        (project.root / CONFIG_DIRECTORY).mkdir()
        (project.root / target.shown).write_text(text, encoding="utf-8")
        environments_file = (target.project.root / ENVIRONMENTS_FILE).read_bytes()
        (project.root / ENVIRONMENTS_FILE).write_bytes(environments_file)
        for name, content in draft.files.items():
            path = project.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return _planned(project, target)


def _planned(project: Project, target: _Target) -> ModelConfig:
    """Returns the config, if every environment that deploys it accepts it.

    Args:
        project: has the config.
        target: the config's place in its own project.

    Raises:
        UserError: every problem in any of these environments.
    """
    try:
        deploying = project.deploying_environments(target.name)
    except UserError:
        deploying = []  # planning reports what is invalid
    return planned(project, target.name, deploying or target.environments)
