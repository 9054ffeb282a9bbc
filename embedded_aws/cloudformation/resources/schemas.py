"""The required and create-only properties of each type, as a table from AWS's provider schemas."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from importlib import resources

from embedded_aws.cloudformation.resources.base import ResourceHandler


@functools.cache
def provider_schemas() -> Mapping[str, Mapping[str, list[str]]]:
    """Returns the committed table: maps a type to its `required` and `create_only` properties."""
    text = resources.files(__package__).joinpath("schemas.json").read_text(encoding="utf-8")
    table: dict[str, dict[str, list[str]]] = json.loads(text)["types"]
    return table


def apply_schema(handler: ResourceHandler) -> ResourceHandler:
    """Adds the table's required and create-only properties to a handler, and returns it."""
    schema = provider_schemas().get(handler.type_name)
    if schema is not None:
        handler.required = frozenset(schema["required"])
        handler.create_only = frozenset(schema["create_only"])
    return handler
