"""Checks answers of `slipway init` while they are typed, by the rules of the config's fields."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import typer
from pydantic import ValidationError

from slipway.codes.code import Code
from slipway.config.load import is_secondary_error
from slipway.config.messages import describe
from slipway.config.schema import ModelConfig
from slipway.config.starter import parse_weights
from slipway.errors import FieldPath, Kind, Problem, UserError

_FIELDS: Final[Mapping[str, FieldPath]] = {
    "family": ("model", "family"),
    "parameters": ("model", "parameters"),
    "instance": ("endpoint", "instances"),
    "sample": ("artifacts", "sample", "path"),
    "weights": ("artifacts", "weights"),
    "latency_milliseconds": ("alarms", "model_latency_p99_milliseconds"),
    "task": ("serving", "task"),
    "repository": ("serving", "repository"),
    "image_uri": ("serving", "image_uri"),
}
_NUMBERS: Final = ("parameters", "latency_milliseconds")


def reader_of(name: str, container: str, root: Path) -> Callable[[str], Any]:
    """Returns a function that reads one answer; it raises BadParameter for a wrong answer.

    A prompt of typer shows the error and asks again.
    """

    def read(text: str) -> Any:
        try:
            value = _value(name, text)
            problems = list(_problems(name, value, container, root))
        except UserError as error:
            problems = list(error.problems)
        if problems:
            raise typer.BadParameter(
                "\n".join(f"{each.message}. {each.remedy}".strip() for each in problems)
            )
        return value

    return read


def _value(name: str, text: str) -> Any:
    if name not in _NUMBERS:
        return text
    try:
        # As a config has it: `124439808` or `7.6e9`.
        number = float(text)
    except ValueError:
        number = math.nan
    if number.is_integer():
        return int(number)
    raise UserError.of(
        Code.WRONG_TYPE, f"{text!r} is not a whole number", "Write it as `7600000000` or `7.6e9`."
    )


def _problems(name: str, value: Any, container: str, root: Path) -> Iterator[Problem]:
    field = _FIELDS[name]
    found = [
        problem
        for problem in _validated(_content(field, _written(name, value), container))
        if problem.field[: len(field)] == field
    ]
    yield from found
    if found or name not in ("sample", "weights"):
        return
    path = parse_weights(value).get("path") if name == "weights" else value
    if path is not None and not (root / path).is_dir():
        yield Problem(
            Code.NO_FILES,
            Kind.VALUE,
            f"{path} is not a directory of this project",
            f"Copy it to {root / path}, or link it there and set SLIPWAY_ALLOW_OUTSIDE to its "
            "folder, or name another one.",
        )


def _written(name: str, value: Any) -> Any:
    """Returns an answer as the file will have it."""
    if name == "instance":
        return [value]
    return parse_weights(value) if name == "weights" else value


def _content(field: FieldPath, value: Any, container: str) -> dict[str, Any]:
    content: Any = value
    for key in reversed(field):
        content = {key: content}
    if field[0] == "serving":
        content["serving"]["container"] = container
    return dict(content)


def _validated(content: Mapping[str, Any]) -> Iterator[Problem]:
    """Yields every problem of a config that has one answer; all other fields are missing."""
    try:
        ModelConfig.model_validate(content)
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            if not is_secondary_error(detail):
                yield describe(detail, ModelConfig, {})
