"""`slipway import`: a model config of what somebody has already."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from slipway.cli.import_report import ImportResult, Target, finish
from slipway.cli.new_configs import flag, new_file
from slipway.cli.output import JsonOption, current_project
from slipway.codes.code import Code
from slipway.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from slipway.cli.import_endpoint import LiveEndpoint
    from slipway.config.environments import Environment
    from slipway.importing.draft import FieldName, Guess, KnownFacts
    from slipway.importing.lmi.source import LmiSource
    from slipway.importing.weights import WeightsPlace

_WEIGHTS_FORMS = "hub:OWNER/NAME@REVISION, s3://BUCKET/PREFIX/ or a directory"
_QUESTIONS = {
    "weights": f"Weights ({_WEIGHTS_FORMS})",
    "family": "Architecture of the network",
    "parameters": "Number of its weights",
    "instance": "Hosting instance type",
}
_NUMBERS = ("parameters",)


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
    """Write a model config of a model that is deployed in another way.

    Each guess has a comment in the config. Settings that the config cannot say are listed.
    """
    from slipway.importing.draft import KnownFacts

    sources = {"--properties": properties, "--call": call, "--hub": hub, "--endpoint": endpoint}
    named = [option for option, value in sources.items() if value is not None]
    if len(named) != 1:
        raise UserError.of(
            Code.WRONG_OPTIONS,
            f"{' and '.join(named)} name several sources"
            if named
            else "there is nothing to import",
            f"Give one of {', '.join(sources)}.",
        )
    if region is not None and endpoint is None:
        raise UserError.of(
            Code.WRONG_OPTIONS, "`--region` goes with `--endpoint`", "Leave `--region` out."
        )
    project = current_project()
    path, shown = new_file(
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
    target = Target(project, environments, name, path, shown, overwrite)
    if properties is not None:
        made = _of_properties(properties, given, weights, target)
    elif call is not None:
        made = _of_call(call, given, weights, target)
    elif endpoint is not None:
        made = _of_endpoint(endpoint, region, given, weights, target)
    else:
        made = _of_checkpoint(hub or "", given, weights, target)
    finish(made, target, dry_run=dry_run, as_json=as_json)


def _of_properties(
    directory: Path, given: KnownFacts, weights: str | None, target: Target
) -> ImportResult:
    from slipway.importing.lmi.source import read_directory

    source = read_directory(directory, directory.as_posix().rstrip("/"))
    return _lmi_made(source, given, weights, target)


def _lmi_made(
    source: LmiSource,
    given: KnownFacts,
    weights: str | None,
    target: Target,
    live: LiveEndpoint | None = None,
) -> ImportResult:
    from slipway.importing.lmi.images import suitable_draft
    from slipway.importing.lmi.weights import weights_place

    place = weights_place(source, target.project.root)
    if live is not None:
        place = live.placed(place, weights)
    given, guesses = _completed(given, weights, place, live)
    made = suitable_draft(source, given, guesses, _reference(target.environments))
    return ImportResult(made.draft, source.origin, made.added)


def _of_call(path: Path, given: KnownFacts, weights: str | None, target: Target) -> ImportResult:
    """Returns the config of a notebook's call: of an LMI image, of Triton, or of any other image.

    Raises:
        UserError: the call names no image, and no option does.
    """
    from slipway.cli.import_endpoint import copy_steps
    from slipway.importing.call import read_call
    from slipway.importing.custom.drafts import custom_draft
    from slipway.importing.custom.weights import weights_place
    from slipway.importing.lmi.images import image_of
    from slipway.importing.lmi.variables import source_of_call
    from slipway.importing.triton.repositories import release_of, repository_draft

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
    if (release := release_of(call.image_uri)) is not None:
        folder = f"build/{given.name}"
        place = dataclasses.replace(weights_place(call), section={"source": "path", "path": folder})
        given, guesses = _completed(given, weights, place)
        draft = repository_draft(call, given, guesses, release, folder)
        return ImportResult(draft, call.origin, {}, first=copy_steps(call, folder))
    given, guesses = _completed(given, weights, weights_place(call))
    return ImportResult(custom_draft(call, given, guesses), call.origin, {})


def _of_endpoint(
    endpoint: str, region: str | None, given: KnownFacts, weights: str | None, target: Target
) -> ImportResult:
    """Returns the config of an endpoint that is there.

    Raises:
        UserError: it is not there, may not be read, or has a form that no config can say.
    """
    from slipway.cli.import_endpoint import read_live
    from slipway.importing.custom.drafts import custom_draft
    from slipway.importing.custom.weights import weights_place
    from slipway.importing.lmi.images import image_of
    from slipway.importing.neuron.drafts import neuron_draft
    from slipway.importing.own_images import own_image
    from slipway.importing.tensorrt.drafts import tensorrt_draft
    from slipway.importing.triton.drafts import triton_draft
    from slipway.importing.triton.repositories import release_of, repository_draft

    live = read_live(endpoint, region, given)
    call, given = live.call, live.given
    image, own = image_of(call.image_uri or ""), own_image(call.image_uri or "")
    drafts = {"neuron": neuron_draft, "tensorrt": tensorrt_draft, "triton": triton_draft}
    if image is not None:
        given = dataclasses.replace(
            given, framework=given.framework or image[0], version=given.version or image[1]
        )
        return live.made(_lmi_made(_lmi_source(live), given, weights, target, live), target)
    place = live.placed(weights_place(call), weights)
    given, guesses = _completed(given, weights, place, live)
    if own is not None and own.family in drafts:
        draft = drafts[own.family](call, given, guesses, own.tag)
    elif (release := release_of(call.image_uri or "")) is not None:
        draft = repository_draft(call, given, guesses, release, live.folder)
    else:
        draft = custom_draft(call, given, guesses)
    return live.made(ImportResult(draft, live.origin, {}), target)


def _lmi_source(live: LiveEndpoint) -> LmiSource:
    """Returns the settings of an LMI endpoint: of its variables, or of the package beside them."""
    from slipway.importing.lmi.packages import source_of_package
    from slipway.importing.lmi.variables import source_of_call

    package = live.package()
    return source_of_package(live.call, package) if package.files else source_of_call(live.call)


def _of_checkpoint(
    checkpoint: str, given: KnownFacts, weights: str | None, target: Target
) -> ImportResult:
    """Returns the config of a checkpoint: in a folder, or on the Hub.

    Raises:
        UserError: the checkpoint cannot be read, or the network answers with no text.
    """
    from slipway.importing.checkpoints import checkpoint_place, require_generator
    from slipway.importing.draft import Guess
    from slipway.importing.lmi.checkpoints import checkpoint_draft
    from slipway.importing.weights import is_commit

    try:
        place = checkpoint_place(checkpoint, target.project.root)
    except UserError as error:
        # No config has a field yet that a message could name.
        raise UserError(dataclasses.replace(each, field=()) for each in error.problems) from None
    require_generator(
        dataclasses.replace(
            given,
            family=given.family or place.facts.family,
            parameters=given.parameters or place.facts.parameters,
        ),
        place,
    )
    given, guesses = _completed(given, weights, place)
    if place.repository is not None and weights is None and not is_commit(place.branch):
        reason = f"the present commit of `{place.branch}`."
        guesses["artifacts", "weights", "revision"] = Guess(reason)
    made = checkpoint_draft(
        place.facts, given, guesses, _reference(target.environments), origin=checkpoint
    )
    return ImportResult(made.draft, checkpoint, made.added)


def _completed(
    given: KnownFacts, weights: str | None, place: WeightsPlace, live: LiveEndpoint | None = None
) -> tuple[KnownFacts, dict[FieldName, Guess]]:
    """Returns all facts that a config needs; asks on a terminal for those that nothing tells.

    Args:
        given: the options.
        weights: the option `--weights`.
        place: the weights that the source names.
        live: the endpoint that is imported; None for any other source.

    Raises:
        UserError: facts are missing, and there is no terminal.
    """
    from slipway.config.starter import parse_weights
    from slipway.importing.networks import guessed_network, read_network

    guesses: dict[FieldName, Guess] = {}
    if weights is not None:
        place = dataclasses.replace(place, section=parse_weights(weights), size_gb=None)
    elif place.section is None and place.repository is not None:
        place, guesses = _on_the_hub(place)
    given, read = read_network(dataclasses.replace(given, weights=place.section), place)
    given, network = guessed_network(given, _checkpoint_name(place.section), place.name)
    guesses |= read | network
    if live is not None:
        given, rough = live.roughly(given, place)
        guesses |= rough
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
    return dataclasses.replace(given, **answers), guesses


def _checkpoint_name(section: Mapping[str, Any] | None) -> str:
    """Returns the repository, the prefix in S3 or the folder of a checkpoint."""
    names = [text for key, text in (section or {}).items() if key in ("repository", "uri", "path")]
    return str(names[0]) if names else ""


def _on_the_hub(place: WeightsPlace) -> tuple[WeightsPlace, dict[FieldName, Guess]]:
    """Asks the Hub about weights whose commit the source does not name.

    Raises:
        UserError: the Hub does not answer, or does not have it.
    """
    from slipway.importing.checkpoints import hub_place
    from slipway.importing.draft import Guess

    try:
        found = hub_place(place)
    except UserError as error:
        raise UserError(
            dataclasses.replace(
                problem,
                message=f"{place.missing}: {problem.message}",
                remedy=f"{problem.remedy} Or name the commit: `--weights "
                f"hub:{place.repository}@COMMIT`.",
                field=(),
            )
            for problem in error.problems
        ) from None
    guess = Guess(f"`{place.name}` names no commit. This is the present one of `{place.branch}`.")
    return found, {("artifacts", "weights", "revision"): guess}


def _reference(environments: Sequence[Environment]) -> Environment:
    """Returns the environment whose rules decide the guesses: the first that deploys releases."""
    releases = (each for each in environments if each.artifacts == "release")
    return next(releases, environments[0])
