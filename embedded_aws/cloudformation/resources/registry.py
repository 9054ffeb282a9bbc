"""The handlers of all resource types, with each type's facts from AWS's provider schemas."""

import fnmatch
import threading
from collections.abc import Callable, Collection, Iterable, Mapping

from slipway.embedded_aws.cloudformation.resources.base import ResourceHandler
from slipway.embedded_aws.cloudformation.resources.inert import RecordedHandler
from slipway.embedded_aws.cloudformation.template import Template
from slipway.embedded_aws.errors import LocalAwsError
from slipway.facts.resource_types import provider_schemas


class ResourceRegistry:
    """Handlers by type.

    Args:
        handlers: one per type; each gets its required and create-only properties from the table.
        recorded: patterns (fnmatch) of further types, whose resources are recorded without effect.
        others: makes the handlers of types that neither of them has, once one is asked for.

    Raises:
        LocalAwsError: a recorded type has a handler of Slipway's.
    """

    def __init__(
        self,
        handlers: Iterable[ResourceHandler],
        recorded: Collection[str] = (),
        others: Callable[[], Iterable[ResourceHandler]] = tuple,
    ) -> None:
        self._recorded = recorded
        self._handlers = {handler.type_name: handler for handler in handlers}
        self._make_others = others
        self._others: Mapping[str, ResourceHandler] | None = None
        self._lock = threading.Lock()
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
        types = {item.type for item in template.resources.values()}
        return sorted(
            name for name in types if not self._is_recorded(name) and self._find(name) is None
        )

    def get(self, type_name: str) -> ResourceHandler:
        """Returns the handler of a type that is known to be emulated, or is recorded."""
        handler = self._find(type_name)
        return RecordedHandler(type_name) if handler is None else handler

    def _find(self, type_name: str) -> ResourceHandler | None:
        if type_name in self._handlers:
            return self._handlers[type_name]
        # The other types are recorded on request too: moto makes some of a service, and fails.
        if self._is_recorded(type_name):
            return None
        with self._lock:  # a handler knows what it made, so that a type has only one
            if self._others is None:
                self._others = {handler.type_name: handler for handler in self._make_others()}
        return self._others.get(type_name)

    def _is_recorded(self, type_name: str) -> bool:
        return any(fnmatch.fnmatchcase(type_name, pattern) for pattern in self._recorded)
