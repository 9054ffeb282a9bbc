"""`slipway import`: a model config of what somebody has already."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from slipway.cli.import_report import Target, finish
from slipway.cli.new_configs import QUESTIONS, WEIGHTS_FORMS, flag, new_file
from slipway.cli.output import JsonOption, current_project, wrong_options
from slipway.codes.code import Code
from slipway.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Sequence


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
    weights: Annotated[str | None, typer.Option(help=f"{WEIGHTS_FORMS}.")] = None,
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
    from slipway.importing.sources import Importer

    sources = {"--properties": properties, "--call": call, "--hub": hub, "--endpoint": endpoint}
    named = [option for option, value in sources.items() if value is not None]
    if len(named) != 1:
        raise wrong_options(
            f"{' and '.join(named)} name several sources"
            if named
            else "there is nothing to import",
            f"Give one of {', '.join(sources)}.",
        )
    if region is not None and endpoint is None:
        raise wrong_options("`--region` goes with `--endpoint`", "Leave `--region` out.")
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
            f"Give {', '.join(map(flag, missing))}.",
        )
    answers: dict[str, Any] = {}
    for name in missing:
        answer = typer.prompt(QUESTIONS[name], type=int if name == "parameters" else str)
        answers[name] = parse_weights(answer) if name == "weights" else answer
    return answers
