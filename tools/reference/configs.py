"""Renders the reference pages of the two YAML files. The schema is their source."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from slipway.config.environments import Environment
from slipway.config.fields import find, tag_of
from slipway.config.schema import ModelConfig
from tools.reference.config_examples import Example
from tools.reference.config_examples.environments import ENVIRONMENTS
from tools.reference.config_examples.model import MODEL
from tools.reference.config_values import pattern, values

MODEL_PAGE, ENVIRONMENTS_PAGE = "reference.md", "reference/environments.md"
# What fits a table's cell. The rest stands below the table.
LONGEST_MEANING_WORDS = 25
_LONGEST_VALUES, _LONGEST_EXAMPLE = 60, 32

_HEADS = {
    MODEL_PAGE: """\
# Reference: model config

For anyone who writes `model_configs/NAME.yaml`. This page has every field: its values, its default
and its meaning. The targets in `environments.yaml` have a page of their own:
[Environments](reference/environments.md).

Unknown fields, duplicate keys and quoted numbers are errors. `slipway validate` reports all of
them at once, each with its line.

This page is written by `python -m tools.reference`.

## Model config
""",
    ENVIRONMENTS_PAGE: """\
# Reference: environments

For anyone who deploys to an account. `environments.yaml` names the targets of a project. The CDK
CLI chooses one with `-c env=NAME`, and `slipway` with `--env NAME`. This page has every field of
the file: its values, its default and its meaning.

Each key of the file is the name of an environment, except for `project`. The environment `local`
is the embedded AWS on your machine. [Operations](../operations.md#a-new-account) has the commands
for the first deployment to a new account.

This page is written by `python -m tools.reference`.

## Environment
""",
}


def pages() -> dict[str, str]:
    """Returns the pages as Markdown, by their paths in docs/."""
    return {
        MODEL_PAGE: _page(MODEL_PAGE, ModelConfig, MODEL),
        ENVIRONMENTS_PAGE: _page(ENVIRONMENTS_PAGE, Environment, ENVIRONMENTS),
    }


def _page(path: str, model: type[BaseModel], examples: Mapping[str, Example]) -> str:
    return "\n".join([_HEADS[path], *_section(model, examples, ())]).rstrip("\n") + "\n"


def _section(
    model: type[BaseModel], examples: Mapping[str, Example], path: tuple[str, ...], tag: str = ""
) -> Iterator[str]:
    """Yields the lines of a section and of those inside it."""
    title = _title(path, tag)
    if path:
        yield f"### {_shown(path, tag)}\n"
    yield f"{_summary(model)}\n"
    example = examples[title]
    yield f"```yaml {example.label}\n{example.text}```\n"
    yield from _table(model, path)
    yield from _notes(model)
    for name in model.model_fields:
        sections = find(model, (name,)).sections
        for section in sections:
            chosen = (tag_of(section) or "") if len(sections) > 1 else ""
            yield from _section(section, examples, (*path, name), chosen)


def _title(path: tuple[str, ...], tag: str) -> str:
    return f"{'.'.join(path)} {tag}".strip()


def _shown(path: tuple[str, ...], tag: str) -> str:
    return f"`{'.'.join(path)}`{f' {tag}' if tag else ''}"


def _table(model: type[BaseModel], path: tuple[str, ...]) -> Iterator[str]:
    yield "| field | values | default | meaning |"
    yield "|---|---|---|---|"
    for name, info in model.model_fields.items():
        sections = find(model, (name,)).sections
        meaning, _ = split_description(info.description or "")
        if sections:
            tags = [(tag_of(section) or "") if len(sections) > 1 else "" for section in sections]
            links = ", ".join(_link((*path, name), tag) for tag in tags)
            meaning = f"{meaning} See {links}.".strip()
        yield f"| `{name}` | {_values_cell(model, name, info)} | {_default(info)} | {meaning} |"
    yield ""


def split_description(text: str) -> tuple[str, str]:
    """Returns what of a description fits a table's cell, in whole sentences, and the rest."""
    if len(text.split()) <= LONGEST_MEANING_WORDS:
        return text, ""
    sentences = re.split(r"(?<=[.!?]) (?=[A-Z`])", text)
    kept = sentences[:1]
    for sentence in sentences[1:]:
        if len(" ".join([*kept, sentence]).split()) > LONGEST_MEANING_WORDS:
            break
        kept.append(sentence)
    return " ".join(kept), " ".join(sentences[len(kept) :])


def _values_cell(model: type[BaseModel], name: str, info: FieldInfo) -> str:
    text = values(model, name)
    if len(text) > _LONGEST_VALUES:
        return "a list of names, below" if text.startswith("list of") else "one of those below"
    example = _example(info)
    if example and len(example) <= _LONGEST_EXAMPLE and not text.startswith("`"):
        return f"{text}, such as `{example}`"
    return text


def _example(info: FieldInfo) -> str:
    return _in_yaml(info.examples[0]) if info.examples else ""


def _in_yaml(value: Any) -> str:
    """Returns a value as YAML reads it back, with quotes where a text needs them."""
    if isinstance(value, str) and value and yaml.safe_load(value) == value:
        return value
    return json.dumps(value)


def _notes(model: type[BaseModel]) -> Iterator[str]:
    """Yields a list of what does not fit the cells: sentences, values, examples and patterns."""
    notes = list[str]()
    for name, info in model.model_fields.items():
        _, rest = split_description(info.description or "")
        parts = [rest] if rest else []
        shown = values(model, name)
        if len(shown) > _LONGEST_VALUES:
            parts.append(f"Values: {shown}.")
        example = _example(info)
        if len(example) > _LONGEST_EXAMPLE:
            parts.append(f"Example: `{example}`.")
        if expression := pattern(model, name):
            parts.append(f"Pattern: `{expression}`.")
        if parts:
            notes.append(f"- `{name}`: {' '.join(parts)}")
    if notes:
        yield "\n".join(notes)
        yield ""


def _link(path: tuple[str, ...], tag: str) -> str:
    # As GitHub writes anchors: lower case, punctuation dropped, spaces as hyphens.
    anchor = "".join(path) + (f"-{tag}" if tag else "")
    return f"[{_shown(path, tag)}](#{anchor})"


def _default(info: FieldInfo) -> str:
    value: Any = info.get_default(call_default_factory=True, validated_data={})
    if value is PydanticUndefined:
        return "required"
    if isinstance(value, BaseModel):
        return "its defaults"
    return "none" if value is None else f"`{_in_yaml(value)}`"


def _summary(model: type[BaseModel]) -> str:
    return (model.__doc__ or "").strip().splitlines()[0]
