"""Finds the handler of a resource type."""

from __future__ import annotations

from collections.abc import Iterable

from embedded_aws.cloudformation.resources.base import ResourceHandler
from embedded_aws.cloudformation.resources.schemas import apply_schema


class ResourceRegistry:
    """Handlers by type.

    Args:
        handlers: one per type.
    """

    def __init__(self, handlers: Iterable[ResourceHandler]) -> None:
        self._handlers = {handler.type_name: apply_schema(handler) for handler in handlers}

    def find(self, type_name: str) -> ResourceHandler | None:
        """Returns the type's handler, or None if the type is not emulated."""
        return self._handlers.get(type_name)

    def get(self, type_name: str) -> ResourceHandler:
        """Returns the handler of a type that is known to be emulated."""
        return self._handlers[type_name]

    def types(self) -> list[str]:
        """Returns every emulated type, sorted."""
        return sorted(self._handlers)
