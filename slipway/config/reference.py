"""Writes docs/reference.md from the schema: `python -m slipway.config.reference`.

A test fails when the page and the schema differ.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from slipway.config.environments import Environment
from slipway.config.fields import find, tag_of
from slipway.config.schema import ModelConfig

_INTRODUCTION = """\
# Reference

Every field of `model_configs/NAME.yaml` and `environments.yaml`. Unknown fields, duplicate keys and
quoted numbers are errors; `slipway validate` reports all of them at once, each with its line.

Slipway rejects settings that it cannot deploy yet, and names them in the error:

- the modes `async` and `scale_to_zero`
- `shadow`, `data_capture`, `vpc` and `volume_key_arn` of the endpoint
- `schedules` and `steps` of autoscaling
- every rollout but `all_at_once`
- the alarm `at_max_capacity`

Two things can be planned and synthesised, and not published yet: models of the container `triton`,
and `artifacts.release` of the container `lmi`. `slipway plan NAME --allow-unpublished` and
`cdk synth NAME -c allow-unpublished=true` show such a deployment.

This page is written by `python -m slipway.config.reference > docs/reference.md`.
"""


def render() -> str:
    """Returns the page as Markdown."""
    lines = [_INTRODUCTION]
    lines += ["## Model config\n", *_section(ModelConfig, ())]
    lines += ["## Environment\n", *_section(Environment, ())]
    return "\n".join(lines) + "\n"


def _section(model: type[BaseModel], path: tuple[str, ...], tag: str = "") -> Iterator[str]:
    if path:
        yield f"### {_title(path, tag)}\n"
    yield f"{_summary(model)}\n"
    yield from _table(model, path)
    for name in model.model_fields:
        sections = find(model, (name,)).sections
        for section in sections:
            chosen = (tag_of(section) or "") if len(sections) > 1 else ""
            yield from _section(section, (*path, name), chosen)


def _title(path: tuple[str, ...], tag: str) -> str:
    return f"`{'.'.join(path)}`{f' {tag}' if tag else ''}"


def _table(model: type[BaseModel], path: tuple[str, ...]) -> Iterator[str]:
    yield "| field | default | example | |"
    yield "|---|---|---|---|"
    for name, info in model.model_fields.items():
        sections = find(model, (name,)).sections
        text = info.description or ""
        example = f"`{json.dumps(info.examples[0])}`" if info.examples else ""
        if sections:
            tags = [(tag_of(section) or "") if len(sections) > 1 else "" for section in sections]
            links = ", ".join(_link((*path, name), tag) for tag in tags)
            text = f"{text} See {links}.".strip()
        yield f"| `{name}` | {_default(info)} | {example} | {text} |"
    yield ""


def _link(path: tuple[str, ...], tag: str) -> str:
    # As GitHub writes anchors: lower case, punctuation dropped, spaces as hyphens.
    anchor = "".join(path) + (f"-{tag}" if tag else "")
    return f"[{_title(path, tag)}](#{anchor})"


def _default(info: FieldInfo) -> str:
    value: Any = info.get_default(call_default_factory=True, validated_data={})
    if value is PydanticUndefined:
        return "required"
    if isinstance(value, BaseModel):
        return "its defaults"
    return "none" if value is None else f"`{json.dumps(value)}`"


def _summary(model: type[BaseModel]) -> str:
    return (model.__doc__ or "").strip().splitlines()[0]


if __name__ == "__main__":
    sys.stdout.write(render())
