"""Says in words which values a field takes, for the reference pages."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from pydantic import BaseModel

from slipway.config.sections.base import INSTANCE_TYPE_REFERENCE, LOG_RETENTION_DAYS

# Fields whose values a validator checks, of which the JSON Schema knows only the type.
_CHECKED = {"log_retention_days": f"one of {', '.join(map(str, LOG_RETENTION_DAYS))}"}
_NUMBERS = {"integer": "whole number", "number": "number"}


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
