"""The handlers of all resource types, with each type's facts from AWS's provider schemas."""

import fnmatch
from collections.abc import Collection, Iterable

from slipway.embedded_aws.cloudformation.resources.base import ResourceHandler
from slipway.embedded_aws.cloudformation.resources.inert import RecordedHandler
from slipway.embedded_aws.cloudformation.resources.moto_types import MotoHandler
from slipway.embedded_aws.cloudformation.template import Template
from slipway.embedded_aws.errors import LocalAwsError
from slipway.facts.resource_types import provider_schemas


class ResourceRegistry:
    """Handlers by type.

    Args:
        handlers: one per type; each gets its required and create-only properties from the table.
        recorded: patterns (fnmatch) of further types, whose resources are recorded without effect.

    Raises:
        LocalAwsError: a recorded type has a handler of Slipway's.
    """

    def __init__(self, handlers: Iterable[ResourceHandler], recorded: Collection[str] = ()) -> None:
        self._recorded = recorded
        # Types that moto makes are recorded on request too: it makes some of a service, and fails.
        self._handlers = {
            handler.type_name: handler
            for handler in handlers
            if not (isinstance(handler, MotoHandler) and self._is_recorded(handler.type_name))
        }
        if known := sorted(self._handlers.keys() & set(recorded)):
            raise LocalAwsError(
                f"The embedded AWS makes resources of {', '.join(known)}: start it without "
                f"`{' '.join(f'--record {name}' for name in known)}`."
            )
        for type_name in provider_schemas().keys() & self._handlers:
            schema, handler = provider_schemas()[type_name], self._handlers[type_name]
            handler.required = frozenset(schema["required"])
            handler.create_only = frozenset(schema["create_only"])

    def unknown_types(self, template: Template) -> list[str]:
        """Returns the types of a template that are not emulated."""
        unknown = {item.type for item in template.resources.values()} - self._handlers.keys()
        return sorted(name for name in unknown if not self._is_recorded(name))

    def get(self, type_name: str) -> ResourceHandler:
        """Returns the handler of a type that is known to be emulated, or is recorded."""
        handler = self._handlers.get(type_name)
        return RecordedHandler(type_name) if handler is None else handler

    def _is_recorded(self, type_name: str) -> bool:
        return any(fnmatch.fnmatchcase(type_name, pattern) for pattern in self._recorded)
