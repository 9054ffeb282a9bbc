"""The fields of the two YAML files, section by section. The schema is their source."""

import json
from collections.abc import Iterator
from typing import Any

import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from slipway.config.fields import find, tag_of
from tools.reference.config_values import pattern, values
from tools.reference.tables import split_description, table

_LONGEST_VALUES, _LONGEST_EXAMPLE = 60, 32


def blocks(model: type[BaseModel]) -> dict[str, str]:
    return dict(_sections(model, (), ""))


def _sections(model: type[BaseModel], path: tuple[str, ...], tag: str) -> Iterator[tuple[str, str]]:
    """Yields the title and the block of a section, and of those inside it."""
    rows = [_row(model, (*path, name), info) for name, info in model.model_fields.items()]
    parts = [table("field | values | default | meaning", rows), "\n".join(_notes(model))]
    yield f"{'.'.join(path)} {tag}".strip() or "the file", "\n\n".join(filter(None, parts))
    for name in model.model_fields:
        for inner_tag, section in _inner(model, name):
            yield from _sections(section, (*path, name), inner_tag)


def _inner(model: type[BaseModel], name: str) -> list[tuple[str, type[BaseModel]]]:
    """Returns the sections that a field may have; a tag tells several of them apart."""
    sections = find(model, (name,)).sections
    return [((tag_of(each) or "") if len(sections) > 1 else "", each) for each in sections]


def _row(model: type[BaseModel], path: tuple[str, ...], info: FieldInfo) -> tuple[str, ...]:
    name = path[-1]
    meaning, _ = split_description(info.description or "")
    if inner := _inner(model, name):
        links = ", ".join(_link(path, tag) for tag, _ in inner)
        meaning = f"{meaning} See {links}.".strip()
    return f"`{name}`", _values_cell(model, name, info), _default(info), meaning


def _values_cell(model: type[BaseModel], name: str, info: FieldInfo) -> str:
    text = values(model, name)
    if len(text) > _LONGEST_VALUES:
        return "a list of names, below" if text.startswith("list of") else "one of those below"
    example = _example(info)
    if example and len(example) <= _LONGEST_EXAMPLE and not text.startswith("`"):
        return f"{text}, such as `{example}`"
    return text


def _notes(model: type[BaseModel]) -> Iterator[str]:
    """Yields a list of what does not fit the cells: sentences, values, examples and patterns."""
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
            yield f"- `{name}`: {' '.join(parts)}"


def _link(path: tuple[str, ...], tag: str) -> str:
    # As GitHub writes anchors: lower case, punctuation dropped, spaces as hyphens.
    shown = f"`{'.'.join(path)}`{f' {tag}' if tag else ''}"
    return f"[{shown}](#{''.join(path)}{f'-{tag}' if tag else ''})"


def _example(info: FieldInfo) -> str:
    return _in_yaml(info.examples[0]) if info.examples else ""


def _in_yaml(value: Any) -> str:
    """Returns a value as YAML reads it back, with quotes where a text needs them."""
    if isinstance(value, str) and value and yaml.safe_load(value) == value:
        return value
    return json.dumps(value)


def _default(info: FieldInfo) -> str:
    value: Any = info.get_default(call_default_factory=True, validated_data={})
    if value is PydanticUndefined:
        return "required"
    if isinstance(value, BaseModel):
        return "its defaults"
    return "none" if value is None else f"`{_in_yaml(value)}`"
