"""The handlers of all resource types, with each type's facts from AWS's provider schemas."""

import functools
import json
from collections.abc import Iterable, Mapping
from importlib import resources

from slipway.embedded_aws.cloudformation.resources.base import ResourceHandler
from slipway.embedded_aws.cloudformation.template import Template


@functools.cache
def provider_schemas() -> Mapping[str, Mapping[str, list[str]]]:
    """Returns the committed table: maps a type to its `required` and `create_only` properties."""
    text = resources.files(__package__).joinpath("schemas.json").read_text(encoding="utf-8")
    table: dict[str, dict[str, list[str]]] = json.loads(text)["types"]
    return table


class ResourceRegistry:
    """Handlers by type.

    Args:
        handlers: one per type; each gets its required and create-only properties from the table.
    """

    def __init__(self, handlers: Iterable[ResourceHandler]) -> None:
        self._handlers = {handler.type_name: handler for handler in handlers}
        for type_name in provider_schemas().keys() & self._handlers:
            schema, handler = provider_schemas()[type_name], self._handlers[type_name]
            handler.required = frozenset(schema["required"])
            handler.create_only = frozenset(schema["create_only"])

    def unknown_types(self, template: Template) -> list[str]:
        """Returns the types of a template that are not emulated."""
        return sorted({item.type for item in template.resources.values()} - self._handlers.keys())

    def get(self, type_name: str) -> ResourceHandler:
        """Returns the handler of a type that is known to be emulated."""
        return self._handlers[type_name]
