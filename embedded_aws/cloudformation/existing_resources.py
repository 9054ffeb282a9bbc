"""Finds resources of a template that exist already, so that a change set can import them by name.

ImportExistingResources of CreateChangeSet takes a resource whose name is literal in the template,
whose deletion policy keeps it, and that belongs to no stack. A resource that exists and does not
meet these conditions is created instead, which its service refuses.
https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/import-resources-automatically.html
(2026-11-22)
"""

import threading

from embedded_aws.clients import LoopbackClients
from embedded_aws.cloudformation.desired_state import StackIdentity
from embedded_aws.cloudformation.resources.base import ResourceContext, ResourceHandler
from embedded_aws.cloudformation.stack import StackStore
from embedded_aws.cloudformation.template import ResourceDefinition

_KEPT = ("Retain", "RetainExceptOnCreate")


class ExistingResources:
    """Finds what a stack may import.

    Args:
        store: every stack, since a resource of another stack is not imported.
    """

    def __init__(
        self, clients: LoopbackClients, store: StackStore, identity: StackIdentity
    ) -> None:
        self._clients = clients
        self._store = store
        self._identity = identity

    def find(self, definition: ResourceDefinition, handler: ResourceHandler) -> str | None:
        """Returns the physical id of the resource to import, or None if it must be created."""
        name_property = handler.name_property
        name = definition.properties.get(name_property) if name_property else None
        if not isinstance(name, str) or definition.deletion_policy not in _KEPT:
            return None
        found = handler.existing(self._context(definition.logical_id), definition.properties)
        if found is None or self._has_a_stack(definition.type, found.physical_id):
            return None
        return found.physical_id

    def _has_a_stack(self, type_name: str, physical_id: str) -> bool:
        return any(
            (resource.type, resource.physical_id) == (type_name, physical_id)
            for stack in self._store.all(self._identity.region)
            for resource in list(stack.resources.values())
        )

    def _context(self, logical_id: str) -> ResourceContext:
        return ResourceContext(
            clients=self._clients,
            account_id=self._identity.account_id,
            region=self._identity.region,
            stack_name=self._identity.name,
            stack_id=self._identity.id,
            logical_id=logical_id,
            attributes={},
            interrupted=threading.Event(),
            on_initiated=lambda *_: None,
        )
