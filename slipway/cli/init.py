"""`slipway init`: the first lines of a new model config."""

from __future__ import annotations

import sys
from typing import Annotated, Any, Literal

import typer

from slipway.cli.output import current_project
from slipway.config.load import CONFIG_DIRECTORY
from slipway.errors import UserError

_QUESTIONS = {
    "family": "Architecture of the network",
    "parameters": "Number of its weights",
    "instance": "Hosting instance type",
    "sample": "Directory with a small model of it, in this project",
    "latency_milliseconds": "99th percentile of the answers to stay under, in ms",
    "image_uri": "Image in ECR",
}


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(init)


def init(
    name: Annotated[str, typer.Argument(help="Model; the file's name.")],
    container: Annotated[
        str, typer.Option(help="`tensorrt`, or `custom` for an image of your own.")
    ] = "tensorrt",
    family: Annotated[str | None, typer.Option(help="Such as gpt2 or bert.")] = None,
    parameters: Annotated[int | None, typer.Option(help="Number of weights.")] = None,
    instance: Annotated[str | None, typer.Option(help="Such as ml.g4dn.xlarge.")] = None,
    sample: Annotated[str | None, typer.Option(help="Directory with a small model.")] = None,
    latency_milliseconds: Annotated[
        int | None, typer.Option(help="Latency objective, 99th percentile.")
    ] = None,
    image_uri: Annotated[str | None, typer.Option(help="Image of a custom container.")] = None,
) -> None:
    """Write a first model config, every field explained; asks for what no option says."""
    from slipway.config.starter import Answers, render

    project = current_project()
    path = project.root / CONFIG_DIRECTORY / f"{name}.yaml"
    shown = f"{CONFIG_DIRECTORY}/{name}.yaml"
    if path.exists():
        raise UserError.of(f"{shown} is there already", "Choose another name, or edit that file.")
    given: dict[str, Any] = {
        "family": family,
        "parameters": parameters,
        "instance": instance,
        "sample": sample,
        "latency_milliseconds": latency_milliseconds,
    }
    if container == "custom":
        given["image_uri"] = image_uri
    answers = Answers(name=name, container=_known(container), **_answered(given))
    path.parent.mkdir(exist_ok=True)
    path.write_text(render(answers), encoding="utf-8")
    try:
        project = current_project()
        project.plan(name, project.environment("local"), allow_unpublished=True)
    except UserError:
        typer.echo(f"{shown} written; correct what is wrong in it:", err=True)
        raise
    typer.echo(f"{shown} written. Next: `slipway publish {name}`, then `cdk deploy {name}`.")


def _known(container: str) -> Literal["tensorrt", "custom"]:
    if container == "tensorrt":
        return "tensorrt"
    if container == "custom":
        return "custom"
    raise UserError.of(
        f"there is no starter for the container {container!r}",
        "Use `tensorrt`, or `custom` for an image of your own.",
    )


def _answered(given: dict[str, Any]) -> dict[str, Any]:
    missing = [name for name, value in given.items() if value is None]
    if missing and not sys.stdin.isatty():
        options = ", ".join(f"--{name.replace('_', '-')}" for name in missing)
        raise UserError.of("this is no terminal to ask on", f"Give {options}.")
    for name in missing:
        kind = int if name in ("parameters", "latency_milliseconds") else str
        given[name] = typer.prompt(_QUESTIONS[name], type=kind)
    return given
