"""The fields of the two YAML files, section by section. The schema is their source."""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from slipway.config.fields import find, tag_of
from slipway.config.sections.base import INSTANCE_TYPE_REFERENCE, LOG_RETENTION_DAYS
from tools.reference.tables import split_description, table

_LONGEST_VALUES, _LONGEST_EXAMPLE = 60, 32
# Fields whose values a validator checks, of which the JSON Schema knows only the type.
_CHECKED = {"log_retention_days": f"one of {', '.join(map(str, LOG_RETENTION_DAYS))}"}
_NUMBERS = {"integer": "whole number", "number": "number"}


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


def values(model: type[BaseModel], name: str) -> str:
    """Returns the type and the bounds of a field, such as `whole number from 1 to 256`."""
    return _CHECKED.get(name) or _values(_schema(model, name))


def pattern(model: type[BaseModel], name: str) -> str | None:
    """Returns the regular expression that a text, or each text of a list, has to match."""
    schema = _schema(model, name)
    found: str | None = schema.get("items", schema).get("pattern")
    return found


def _schema(model: type[BaseModel], name: str) -> Mapping[str, Any]:
    schema: Mapping[str, Any] = _properties(model)[name]
    # A field that may be left out is a union with null.
    for member in schema.get("anyOf", ()):
        if member.get("type") != "null":
            return dict(member)
    return schema


@cache
def _properties(model: type[BaseModel]) -> Mapping[str, Any]:
    """Returns the JSON Schema of each field; making it takes milliseconds."""
    properties: Mapping[str, Any] = model.model_json_schema()["properties"]
    return properties


def _values(schema: Mapping[str, Any]) -> str:
    if "$ref" in schema or "oneOf" in schema:
        return "section"
    if "const" in schema:
        return _code(schema["const"])
    if "enum" in schema:
        shown = [_code(value) for value in schema["enum"]]
        return f"{', '.join(shown[:-1])} or {shown[-1]}"
    kind = schema.get("type")
    if kind == "boolean":
        return "`true` or `false`"
    if kind in _NUMBERS:
        return f"{_NUMBERS[kind]}{_range(schema)}"
    if kind == "array":
        return _list(schema)
    if kind == "object":
        most = schema.get("maxProperties")
        return f"mapping of at most {most} entries" if most else "mapping"
    if schema.get("format") == INSTANCE_TYPE_REFERENCE:
        return "instance type"
    longest = schema.get("maxLength")
    return f"text of at most {longest} characters" if longest else "text"


def _code(value: str | int) -> str:
    # YAML reads 10.4 as a number, so the page shows the quotes that a text needs in the file.
    is_quoted = isinstance(value, str) and value[0].isdigit()
    return f'`"{value}"`' if is_quoted else f"`{value}`"


def _range(schema: Mapping[str, Any]) -> str:
    low, above, high = (schema.get(key) for key in ("minimum", "exclusiveMinimum", "maximum"))
    shown = ""
    if low is not None:
        shown = f" from {_number(low)}" if high is not None else f" of at least {_number(low)}"
    elif above is not None:
        shown = f" above {_number(above)}"
    if high is None:
        return shown
    return f"{shown} to {_number(high)}" if low is not None else f"{shown}, at most {_number(high)}"


def _number(value: float) -> str:
    return f"{value:,}" if value >= 10_000 else f"{value:g}"


def _list(schema: Mapping[str, Any]) -> str:
    most, least = schema.get("maxItems"), schema.get("minItems", 0)
    items = schema["items"]
    count = ""
    if most:
        count = f"{least} to {most} " if least else f"at most {most} "
    if "$ref" in items:
        return f"list of {count}sections"
    if "enum" in items:
        return f"list of {count}of {_values(items)}"
    noun = {"integer": "whole numbers", "string": "texts"}[items["type"]]
    if items.get("format") == INSTANCE_TYPE_REFERENCE:
        noun = "instance types"
    return f"list of {count}{noun}{_range(items)}"
