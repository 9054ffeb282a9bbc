"""`slipway init`: the first lines of a new model config."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from slipway.cli import new_configs
from slipway.cli.output import current_project, write_file
from slipway.codes.code import Code
from slipway.errors import Kind, Problem, UserError, did_you_mean

if TYPE_CHECKING:
    from pathlib import Path

    from slipway.config.starters.starter import Starter

_QUESTIONS = {
    **new_configs.QUESTIONS,
    "sample": "Directory with a small model of it, in this project",
    "latency_milliseconds": "99th percentile of the answers to stay under, in ms",
    "task": "Task (question-answering, sequence-classification, token-classification, embeddings)",
    "repository": "Directory of your model repository",
    "image_uri": "Image in ECR",
}


def init(
    name: Annotated[str, typer.Argument(help="Name of the model and of its file.")],
    container: Annotated[
        str | None,
        typer.Option(
            help="tensorrt, lmi, triton, neuron, or custom (your own image). Default: the one that "
            "suits the family."
        ),
    ] = None,
    family: Annotated[
        str | None, typer.Option(help="Architecture, such as gpt2; a checkpoint says it.")
    ] = None,
    parameters: Annotated[
        int | None, typer.Option(help="Number of weights; a checkpoint says it.")
    ] = None,
    instance: Annotated[
        str | None,
        typer.Option(
            help="Type, such as ml.g5.xlarge. For lmi: the cheapest that fits a checkpoint."
        ),
    ] = None,
    sample: Annotated[str | None, typer.Option(help="Directory with a small model.")] = None,
    weights: Annotated[str | None, typer.Option(help=f"{new_configs.WEIGHTS_FORMS}.")] = None,
    hub: Annotated[
        str | None,
        typer.Option(help="Weights on the Hugging Face Hub: OWNER/NAME[@REVISION]."),
    ] = None,
    latency_milliseconds: Annotated[
        int | None, typer.Option(help="Latency objective, 99th percentile.")
    ] = None,
    framework: Annotated[
        str | None, typer.Option(help="For lmi: the image. Default: djl-lmi (vLLM).")
    ] = None,
    task: Annotated[
        str | None, typer.Option(help="For neuron: the task, such as question-answering.")
    ] = None,
    repository: Annotated[
        str | None, typer.Option(help="For triton: your model repository; t5 needs none.")
    ] = None,
    image_uri: Annotated[str | None, typer.Option(help="For custom: the image in ECR.")] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the file if it is there already.")
    ] = False,
) -> None:
    """Write a first model config with every field explained; ask for missing answers.

    A checkpoint in a folder of the project or on the Hub says its family, parameters and shape
    itself.
    """
    from slipway.cli.init_checkpoint import FirstConfig, read_checkpoint_of
    from slipway.config.starter import parse_weights, render
    from slipway.config.starters import DEFAULT, suiting

    project = current_project()
    path, shown = new_configs.new_file(
        project.root, name, overwrite=overwrite, otherwise="edit that file, or add `--overwrite`"
    )
    environments = [project.environment(each) for each in project.environment_names]
    own = {
        "framework": framework,
        "task": task,
        "repository": repository,
        "image_uri": image_uri,
    }
    given: dict[str, Any] = {
        "family": family,
        "parameters": parameters,
        "instance": instance,
        "sample": sample,
        "weights": weights,
        "latency_milliseconds": latency_milliseconds,
        **own,
    }
    known = _known(container or DEFAULT)
    place = read_checkpoint_of(given, hub, project.root)
    given["weights"], facts = place.section, place.facts
    given |= {key: getattr(facts, key) for key in ("family", "parameters") if given[key] is None}
    if container is None:
        if given["family"] is None and sys.stdin.isatty():
            given["family"] = _asked("family", DEFAULT, project.root)
        container = suiting(given["family"], facts.task, instance)
        known = _known(container)
    _check_own_options(container, own)
    said = {option: answer for option, answer in given.items() if answer is not None}
    given |= {**known.from_architectures(facts.architectures), **said}
    first = FirstConfig(name, container, place).proposing(given, environments)
    given["instance"] = given["instance"] or first.proposed
    given = _answered(known, given, container, project.root, place.unread)
    if isinstance(given["weights"], str):
        given["weights"] = parse_weights(given["weights"])
    with contextlib.suppress(OSError):  # writing the file says why
        path.parent.mkdir(exist_ok=True)
    write_file(path, render(first.answers(given)), shown)
    try:
        config = new_configs.planned(project, name, environments)
    except UserError:
        typer.echo(f"{shown} written; correct what is wrong in it:", err=True)
        raise
    steps = new_configs.numbered(new_configs.next_steps(config, environments))
    typer.echo("\n".join([*first.told, f"{shown} written.", *steps]))


def _known(container: str) -> Starter:
    from slipway.config.sections.serving import PACKAGES
    from slipway.config.starters import STARTERS

    if container in PACKAGES.problems:
        raise UserError([PACKAGES.problems[container]])
    if container in STARTERS:
        return STARTERS[container]
    raise UserError.of(
        Code.UNKNOWN_CHOICE,
        f"there is no container family {container!r}",
        f"Use {', '.join(STARTERS)}; `custom` is for an image of your own.",
    )


def _check_own_options(container: str, own: Mapping[str, str | None]) -> None:
    """Refuses an option that the container family would silently ignore."""
    from slipway.config.starters import STARTERS

    readers = {
        name: [family for family, each in STARTERS.items() if name in each.options] for name in own
    }
    problems = [
        Problem(
            Code.WRONG_OPTIONS,
            Kind.VALUE,
            f"`{new_configs.flag(name)}` has no effect with the container `{container}`",
            f"Leave it out, or use `--container {' or '.join(readers[name])}`.",
        )
        for name, value in own.items()
        if value is not None and container not in readers[name]
    ]
    for name, allowed in STARTERS[container].choices.items():
        value = own[name]
        if not problems and value is not None and value not in allowed:
            hint = did_you_mean(value, allowed)
            problems.append(
                Problem(
                    Code.UNKNOWN_CHOICE,
                    Kind.VALUE,
                    f"there is no {name} {value!r}",
                    f"{hint}Allowed: {', '.join(allowed)}.",
                )
            )
    if problems:
        raise UserError(problems)


def _missing(starter: Starter, given: Mapping[str, Any]) -> list[str]:
    """Returns the answers that are still missing, in the order of the file."""
    wanted = ["family", "parameters", "instance"]
    required, instead = starter.required(given["family"]), starter.instead_of_weights
    has_files = instead is not None and (instead in required or given[instead] is not None)
    if given["sample"] is None and given["weights"] is None and not has_files:
        wanted.append("sample" if starter.is_tried_with_a_sample else "weights")
    wanted += ["latency_milliseconds", *required]
    return [name for name in wanted if given[name] is None]


def _answered(
    starter: Starter, given: dict[str, Any], container: str, root: Path, unread: str
) -> dict[str, Any]:
    """Asks for missing answers on a terminal; without a terminal, names all of them in an error."""
    missing = _missing(starter, given)
    if missing and not sys.stdin.isatty():
        options = ", ".join(
            "--sample or --weights" if name in ("sample", "weights") else new_configs.flag(name)
            for name in missing
        )
        why = f"{unread}; " if unread and not {"family", "parameters"}.isdisjoint(missing) else ""
        raise UserError.of(
            Code.NO_TERMINAL,
            f"{why}some options are missing, and there is no terminal to ask for them",
            f"Give {options}.",
        )
    answered = dict(given)
    # The family may bring another question with it.
    while missing := _missing(starter, answered):
        answered[missing[0]] = _asked(missing[0], container, root)
    return answered


# Any: a text, or a number.
def _asked(name: str, container: str, root: Path) -> Any:
    from slipway.cli.init_checkpoint import reader_of

    return typer.prompt(_QUESTIONS[name], value_proc=reader_of(name, container, root))
