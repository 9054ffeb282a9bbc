"""What a resource type must do, and what it may use to do it.

A handler makes, changes and removes one kind of resource through the public API of its service,
so that describe calls show it and botocore checks every field's name and type. It never touches a
stack: it reports the physical id as soon as there is one, returns the attributes, and raises to
fail the resource.
"""

# ruff: noqa: ARG002  # every handler has the same methods, and few need all their arguments

from __future__ import annotations

import secrets
import string
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar

from embedded_aws.clients import LoopbackClients

Properties = Mapping[str, Any]
# What Fn::GetAtt gives, by attribute name.
Attributes = Mapping[str, Any]


class ResourceFailedError(Exception):
    """The resource cannot be made, changed or removed; the message is its event's reason."""


class ChangeRefusedError(ResourceFailedError):
    """The change was refused before anything was touched: there is nothing to take back."""


class ReplacementRequiredError(Exception):
    """This change cannot be made in place, for a reason that the type's table does not tell."""


class InterruptedOperationError(Exception):
    """The stack operation was cancelled, or the server is stopping."""


class TagStyle(Enum):
    """How a type spells its Tags property."""

    NONE = "none"
    LIST = "list"  # [{Key, Value}]
    MAP = "map"  # {key: value}


@dataclass(frozen=True)
class ResourceContext:
    """What a handler knows of the stack and the resource it works for.

    Attributes:
        attributes: the resource's, as far as they were reported; empty before it is created.
    """

    clients: LoopbackClients
    account_id: str
    region: str
    stack_name: str
    stack_id: str
    logical_id: str
    attributes: Attributes
    interrupted: threading.Event
    on_initiated: Callable[[str, Attributes], None]

    def client(self, service: str) -> Any:
        """Returns a boto3 client of the stack's region."""
        return self.clients.client(service, self.region)

    def arn(self, service: str, resource: str, *, region: str | None = None) -> str:
        """Returns an ARN of the stack's account (and region, unless another is given)."""
        where = self.region if region is None else region
        return f"arn:aws:{service}:{where}:{self.account_id}:{resource}"

    def initiated(self, physical_id: str, attributes: Attributes | None = None) -> None:
        """Reports that the resource now exists, so that a failure from here on removes it.

        Args:
            physical_id: what Ref gives.
            attributes: what is known already and needed to remove it.
        """
        self.on_initiated(physical_id, attributes or {})

    def wait(self, seconds: float) -> None:
        """Waits, unless the operation is interrupted.

        Raises:
            InterruptedOperationError: the operation was cancelled.
        """
        if self.interrupted.wait(seconds):
            raise InterruptedOperationError

    def physical_name(self, *, maximum: int, lower: bool = False) -> str:
        """Returns a new name as CloudFormation generates them: STACK-LOGICALID-RANDOM.

        Args:
            maximum: the service's limit; the stack's name, then the logical id, is cut to fit.
            lower: whether the service takes lower case only.
        """
        suffix = random_suffix()
        logical_id = self.logical_id[: maximum // 2]
        room = maximum - len(suffix) - len(logical_id) - 2
        name = f"{self.stack_name[:room].rstrip('-')}-{logical_id}-{suffix}"
        return name.lower() if lower else name


def random_suffix() -> str:
    """Returns the twelve characters that end a generated name."""
    return "".join(secrets.choice(string.ascii_letters + string.digits) for _ in range(12))


@dataclass(frozen=True)
class Physical:
    """A resource that exists: what Ref and Fn::GetAtt give."""

    physical_id: str
    attributes: Attributes


class ResourceHandler(ABC):
    """One resource type.

    Attributes:
        type_name: for example `AWS::S3::Bucket`.
        properties: the top-level properties it applies; a template with any other is refused.
        required: those a template must have.
        create_only: those whose change replaces the resource.
        name_property: the one that names the resource, if any: a named resource cannot be replaced.
        attributes: what Fn::GetAtt may ask for.
        tags: how stack tags reach it.
    """

    type_name: str
    properties: frozenset[str] = frozenset()
    required: frozenset[str] = frozenset()
    create_only: frozenset[str] = frozenset()
    name_property: ClassVar[str | None] = None
    attributes: ClassVar[frozenset[str]] = frozenset()
    tags: ClassVar[TagStyle] = TagStyle.NONE

    @abstractmethod
    def create(self, context: ResourceContext, properties: Properties) -> Physical:
        """Makes the resource and waits until it is usable."""

    def update(
        self, context: ResourceContext, physical_id: str, old: Properties, new: Properties
    ) -> Attributes:
        """Changes the resource in place; called only for properties that are not create-only.

        Raises:
            ReplacementRequiredError: it must be replaced after all.
        """
        raise ReplacementRequiredError

    @abstractmethod
    def delete(self, context: ResourceContext, physical_id: str, properties: Properties) -> None:
        """Removes the resource; one that is gone already counts as removed."""

    def existing(self, context: ResourceContext, properties: Properties) -> Physical | None:
        """Returns the resource that has this name already; None where there is none.

        A type whose handler has no such method is never imported, only created.
        """
        return None

    def has_attribute(self, name: str) -> bool:
        """Tells whether Fn::GetAtt may ask for this attribute."""
        return name in self.attributes


def changed(old: Properties, new: Properties, *names: str) -> bool:
    """Tells whether any of these properties differs."""
    return any(old.get(name) != new.get(name) for name in names)
