"""The contents of a stack as immutable values, so that remembering a state is copying a dict."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from slipway.embedded_aws.cloudformation.graph import CircularDependencyError, creation_order

# Deletion policies that keep a resource when it leaves its stack.
KEEPING_POLICIES = ("Retain", "RetainExceptOnCreate")


@dataclass(frozen=True)
class StackIdentity:
    """A stack's name and place, which never change."""

    name: str
    id: str
    region: str
    account_id: str


@dataclass(frozen=True)
class StackResource:
    """A resource of a stack.

    Attributes:
        physical_id: None before it exists, and if it could not be created.
        properties: evaluated, with the stack's tags.
        dependencies: logical ids of resources that must be deleted after this one.
        attempted: whether its handler may have begun to change it.
        adopted: whether it existed before the operation that added it to the stack.
    """

    logical_id: str
    type: str
    physical_id: str | None
    properties: Mapping[str, Any]
    attributes: Mapping[str, Any]
    dependencies: frozenset[str]
    deletion_policy: str
    update_replace_policy: str
    metadata: Any
    status: str
    reason: str | None
    timestamp: datetime
    attempted: bool = True
    adopted: bool = False

    @property
    def outlives_stack(self) -> bool:
        return self.deletion_policy in KEEPING_POLICIES

    def is_same_object(self, other: "StackResource") -> bool:
        return self.type == other.type and self.physical_id == other.physical_id


@dataclass(frozen=True)
class Output:
    key: str
    value: str
    description: str | None
    export_name: str | None


def deletion_order(resources: Iterable[StackResource]) -> list[StackResource]:
    """Orders resources so that each is deleted before the resources it depends on.

    Two resources may share a logical id if one replaced the other; the younger comes first.
    """
    listed = list(resources)
    present = {resource.logical_id for resource in listed}
    dependencies: dict[str, frozenset[str]] = {}
    for resource in listed:
        known = dependencies.get(resource.logical_id, frozenset())
        dependencies[resource.logical_id] = known | (resource.dependencies & present)
    try:
        order = creation_order(dependencies)
    except CircularDependencyError:
        # Old and new resources of two ids may depend on each other crosswise, which makes a circle
        # of ids. The youngest resource then goes first.
        return list(reversed(listed))
    return [
        resource
        for logical_id in reversed(order)
        for resource in reversed(listed)
        if resource.logical_id == logical_id
    ]
