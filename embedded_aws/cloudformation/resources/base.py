"""The interface of a resource type, and the objects that it may use.

A handler creates, changes and deletes one kind of resource through the public API of its service.
Describe calls therefore show it, and botocore checks every field's name and type. It never changes
a stack: it reports the physical id as soon as there is one, returns the attributes, and raises to
fail the resource.
"""

import dataclasses
import secrets
import string
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar

from slipway.embedded_aws.clients import LoopbackClients
from slipway.embedded_aws.cloudformation.stack_contents import StackIdentity

Properties = Mapping[str, Any]
# The values of Fn::GetAtt, by attribute name.
Attributes = Mapping[str, Any]


class ResourceFailedError(Exception):
    """The resource cannot be created, changed or deleted; the message is its event's reason."""


class ChangeRefusedError(ResourceFailedError):
    """The change was refused before it began, so there is nothing to undo."""


class ReplacementRequiredError(Exception):
    """This change cannot be made in place, for a reason outside the type's `create_only` table."""


class InterruptedOperationError(Exception):
    """The stack operation was cancelled, or the server is stopping."""


class TagStyle(Enum):
    """The form of a type's Tags property."""

    NONE = "none"
    LIST = "list"  # [{Key, Value}]
    MAP = "map"  # {key: value}


@dataclass(frozen=True)
class ResourceContext:
    """The stack and the resource that a handler works for.

    Attributes:
        attributes: the resource's attributes, as far as they were reported; empty before it is
            created.
    """

    clients: LoopbackClients
    identity: StackIdentity
    logical_id: str
    attributes: Attributes = dataclasses.field(default_factory=dict)
    interrupted: threading.Event = dataclasses.field(default_factory=threading.Event)
    on_initiated: Callable[[str, Attributes], object] = lambda *_: None

    @property
    def region(self) -> str:
        """Returns the stack's region."""
        return self.identity.region

    def client(self, service: str) -> Any:
        """Returns a boto3 client of the stack's region."""
        return self.clients.client(service, self.region)

    def arn(self, service: str, resource: str, *, region: str | None = None) -> str:
        """Returns an ARN of the stack's account.

        Args:
            service: the ARN's service, for example `iam`.
            resource: the last part of the ARN.
            region: None takes the stack's region; an empty string leaves the region out.
        """
        where = self.region if region is None else region
        return f"arn:aws:{service}:{where}:{self.identity.account_id}:{resource}"

    def initiated(self, physical_id: str, attributes: Attributes | None = None) -> None:
        """Reports that the resource now exists, so that a failure of a later step deletes it.

        A handler whose creation ends with this call need not make it.

        Args:
            physical_id: the value of Ref.
            attributes: attributes known so far that deleting needs.
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
            maximum: the service's limit, in characters; the stack's name, then the logical id, is
                cut to fit.
            lower: whether the service accepts lower case only.
        """
        suffix = random_suffix()
        logical_id = self.logical_id[: maximum // 2]
        room = maximum - len(suffix) - len(logical_id) - 2
        name = f"{self.identity.name[:room].rstrip('-')}-{logical_id}-{suffix}"
        return name.lower() if lower else name


def random_suffix() -> str:
    """Returns the twelve characters that end a generated name."""
    return "".join(secrets.choice(string.ascii_letters + string.digits) for _ in range(12))


@dataclass(frozen=True)
class Physical:
    """An existing resource: the values of Ref and Fn::GetAtt."""

    physical_id: str
    attributes: Attributes


class ResourceHandler(ABC):
    """One resource type.

    Attributes:
        type_name: for example `AWS::S3::Bucket`.
        properties: the top-level properties that it applies; a template with any other is refused.
        required: properties that a template must have.
        create_only: properties whose change replaces the resource.
        name_property: the property that names the resource, if any: a named resource cannot be
            replaced.
        attributes: the attributes that Fn::GetAtt may ask for.
        tags: how the stack's tags are added.
    """

    type_name: str
    properties: frozenset[str] = frozenset()
    required: frozenset[str] = frozenset()
    create_only: frozenset[str] = frozenset()
    name_property: str | None = None
    attributes: frozenset[str] = frozenset()
    tags: ClassVar[TagStyle] = TagStyle.NONE

    @abstractmethod
    def create(self, context: ResourceContext, properties: Properties) -> Physical:
        """Creates the resource and waits until it is usable."""

    def update(
        self, context: ResourceContext, physical_id: str, old: Properties, new: Properties
    ) -> Attributes:
        """Changes the resource in place; called only if no create-only property differs.

        Args:
            context: the stack and the resource.
            physical_id: the value of Ref.
            old: evaluated properties of the last deployment.
            new: evaluated properties to apply.

        Returns:
            All attributes after the change.

        Raises:
            ReplacementRequiredError: the resource must be replaced after all.
        """
        raise ReplacementRequiredError

    @abstractmethod
    def delete(self, context: ResourceContext, physical_id: str, properties: Properties) -> None:
        """Deletes the resource; a resource that is gone already counts as deleted.

        Args:
            context: the stack and the resource.
            physical_id: the value of Ref.
            properties: evaluated properties of the last deployment.
        """

    def existing(self, context: ResourceContext, properties: Properties) -> Physical | None:
        """Returns the resource that has this name already, or None.

        A type whose handler has no such method is never imported, only created.
        """
        return None

    def has_attribute(self, name: str) -> bool:
        """Returns whether Fn::GetAtt may ask for this attribute."""
        return name in self.attributes


def changed(old: Properties, new: Properties, *names: str) -> bool:
    """Returns whether any of these properties differs."""
    return any(old.get(name) != new.get(name) for name in names)
