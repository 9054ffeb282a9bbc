"""Finds resources of a template that exist already, so that a change set can import them by name.

ImportExistingResources of CreateChangeSet takes a resource whose name is literal in the template,
whose deletion policy keeps it, and that belongs to no stack. A resource that exists and does not
meet these conditions is created instead, which its service refuses.
https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/import-resources-automatically.html
(2026-11-22)
"""

from slipway.embedded_aws.clients import LoopbackClients
from slipway.embedded_aws.cloudformation.resources.base import ResourceContext, ResourceHandler
from slipway.embedded_aws.cloudformation.stack import StackStore
from slipway.embedded_aws.cloudformation.stack_contents import StackIdentity
from slipway.embedded_aws.cloudformation.template import ResourceDefinition

_KEPT = ("Retain", "RetainExceptOnCreate")


def find_existing(
    clients: LoopbackClients,
    store: StackStore,
    identity: StackIdentity,
    definition: ResourceDefinition,
    handler: ResourceHandler,
) -> str | None:
    """Returns the physical id of the resource to import, or None if it must be created."""
    name_property = handler.name_property
    name = definition.properties.get(name_property) if name_property else None
    if not isinstance(name, str) or definition.deletion_policy not in _KEPT:
        return None
    context = ResourceContext(clients, identity, definition.logical_id, handler.service)
    found = handler.existing(context, definition.properties)
    if found is None:
        return None
    belongs_to_a_stack = any(
        (resource.type, resource.physical_id) == (definition.type, found.physical_id)
        for stack in store.all(identity.region)
        for resource in list(stack.resources.values())
    )
    return None if belongs_to_a_stack else found.physical_id
