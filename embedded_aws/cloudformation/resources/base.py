"""The interface of a resource type, and what its handler may use.

A handler creates, changes and deletes one kind of resource through the public API of its service.
Describe calls therefore show it, and botocore checks every field's name and type. It never changes
a stack: it reports the physical id as soon as there is one, returns the attributes, and raises to
fail the resource.

CloudFormation accepts "60" for 60 and "true" for true, because parameters are always strings; the
APIs do not. `ResourceContext.call` converts them. Names need no translation: a template's nested
properties are the API's members.
"""

import contextlib
import dataclasses
import json
import secrets
import string
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from botocore.exceptions import ClientError
from moto.core.utils import get_service_model

from slipway.embedded_aws.clients import LoopbackClients
from slipway.embedded_aws.cloudformation.document import scalar_text
from slipway.embedded_aws.cloudformation.stack_contents import StackIdentity

_BOOLEANS = {"true": True, "false": False}

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


@dataclass(frozen=True)
class ResourceContext:
    """The stack and the resource that a handler works for.

    Attributes:
        service: the handler's, whose client is `api`.
        physical_id: the value of Ref; empty before the resource is created.
        attributes: the resource's attributes, as far as they were reported; empty before it is
            created.
    """

    clients: LoopbackClients
    identity: StackIdentity
    logical_id: str
    service: str
    physical_id: str = ""
    attributes: Attributes = dataclasses.field(default_factory=dict)
    interrupted: threading.Event = dataclasses.field(default_factory=threading.Event)
    on_initiated: Callable[[str, Attributes], object] = lambda *_: None

    @property
    def region(self) -> str:
        return self.identity.region

    @property
    def api(self) -> Any:
        return self.client(self.service)

    def client(self, service: str) -> Any:
        return self.clients.client(service, self.region)

    def call(self, operation: str, parameters: Mapping[str, Any]) -> Any:
        """Calls an operation of the service, such as `CreateModel`.

        Parameters are converted to the types of its input. Those that are None are left out.
        """
        given = {name: value for name, value in parameters.items() if value is not None}
        shaped = _converted(input_shape(self.service, operation), given, operation)
        names = self.api.meta.method_to_api_mapping.items()
        name = next(python for python, api in names if api == operation)
        return getattr(self.api, name)(**shaped)

    def update_tags(
        self,
        identifier: str,
        old: Properties,
        new: Properties,
        *,
        add: str = "TagResource",
        remove: str = "UntagResource",
        tags: Any = None,
    ) -> None:
        """Gives a resource the tags of its new properties.

        Args:
            identifier: the resource, as the two operations name it.
            old: the resource's properties so far.
            new: its properties from now on.
            add: the operation that adds tags, or changes their values.
            remove: the operation that removes tags by their keys.
            tags: the new tags in the form of the service; None if it is that of templates.
        """

        def carry_out(operation: str, content: Any) -> None:
            # Each has two members: the resource, and its tags or their keys.
            members = input_shape(self.service, operation).members
            self.call(operation, dict(zip(members, (identifier, content), strict=True)))

        if removed := removed_tags(old, new):
            carry_out(remove, removed)
        if tag_list(new) and changed(old, new, "Tags"):
            carry_out(add, tags or tag_list(new))

    def arn(self, service: str, resource: str, *, region: str | None = None) -> str:
        """Returns an ARN of the stack's account; an empty region leaves the region out."""
        where = self.region if region is None else region
        return f"arn:aws:{service}:{where}:{self.identity.account_id}:{resource}"

    def initiated(self, physical_id: str, attributes: Attributes | None = None) -> None:
        """Reports that the resource now exists, so that a failure of a later step deletes it.

        A handler whose creation ends with this call need not make it. The attributes are those
        that deleting needs.
        """
        self.on_initiated(physical_id, attributes or {})

    def wait(self, seconds: float) -> None:
        """Waits; raises InterruptedOperationError if the operation was cancelled."""
        if self.interrupted.wait(seconds):
            raise InterruptedOperationError

    def physical_name(self, *, maximum: int, lower: bool = False) -> str:
        """Returns a new name as CloudFormation generates them: STACK-LOGICALID-RANDOM.

        The stack's name, then the logical id, is cut to the service's maximum of characters.
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
    attributes: Attributes = dataclasses.field(default_factory=dict)


class ResourceHandler(ABC):
    """One resource type.

    Attributes:
        type_name: for example `AWS::S3::Bucket`.
        service: boto3's name of the service whose API it calls.
        deletion: the operation that deletes a resource, and the member that takes its physical id.
        gone: the error codes with which that operation says that there is no such resource.
        properties: the top-level properties that it applies; a template with any other is refused.
            A type with `Tags` gets the stack's tags.
        required: properties that a template must have.
        create_only: properties whose change replaces the resource.
        name_property: the property that names the resource, if any: a named resource cannot be
            replaced.
        attributes: the attributes that Fn::GetAtt may ask for.
        tags_by_key: whether `Tags` is a map and no list of Key and Value.
    """

    type_name: str
    service: str = ""
    deletion: ClassVar[tuple[str, str]]
    gone: ClassVar[tuple[str, ...]] = ()
    properties: frozenset[str] = frozenset()
    required: frozenset[str] = frozenset()
    create_only: frozenset[str] = frozenset()
    name_property: str | None = None
    attributes: frozenset[str] = frozenset()
    tags_by_key: ClassVar[bool] = False

    @abstractmethod
    def create(self, context: ResourceContext, properties: Properties) -> Physical:
        """Creates the resource and waits until it is usable."""

    def update(
        self, context: ResourceContext, old: Properties, new: Properties
    ) -> Attributes | None:
        """Changes the resource in place; called only if no create-only property differs.

        Properties are evaluated. Returns all attributes after the change, or None if they stay;
        raises ReplacementRequiredError if the resource must be replaced after all.
        """
        raise ReplacementRequiredError

    def delete(self, context: ResourceContext, properties: Properties) -> None:
        """Deletes the resource; a resource that is gone already counts as deleted."""
        operation, member = self.deletion
        name: Any = context.physical_id
        if input_shape(self.service, operation).members[member].type_name == "list":
            name = [name]
        with ignoring(*self.gone):
            context.call(operation, {member: name})

    def existing(self, context: ResourceContext, properties: Properties) -> Physical | None:
        """Returns the resource that has this name already, or None.

        A type whose handler has no such method is never imported, only created.
        """
        return None

    def has_attribute(self, name: str) -> bool:
        return name in self.attributes


def changed(old: Properties, new: Properties, *names: str) -> bool:
    """Returns whether any of these properties differs."""
    return any(old.get(name) != new.get(name) for name in names)


def input_shape(service: str, operation: str) -> Any:
    """Returns botocore's shape of an operation's input."""
    return get_service_model(service).operation_model(operation).input_shape


def selected(properties: Properties, *names: str, **renamed: str) -> dict[str, Any]:
    """Selects properties for a request.

    Args:
        properties: the resource's properties.
        *names: properties whose names are the API's.
        **renamed: maps an API member to a property of another name.
    """
    picked = {name: properties[name] for name in names if name in properties}
    picked |= {member: properties[name] for member, name in renamed.items() if name in properties}
    return picked


@contextlib.contextmanager
def ignoring(*codes: str) -> Iterator[None]:
    """Ignores errors with these codes, for example when a deleted resource is gone already."""
    try:
        yield
    except ClientError as error:
        if error.response["Error"]["Code"] not in codes:
            raise


def tag_list(properties: Properties) -> list[dict[str, str]]:
    """Returns the Tags property, which may be absent."""
    return list(properties.get("Tags", []))


def tag_map(properties: Properties) -> dict[str, str]:
    """Returns the Tags property as the map that some APIs take."""
    return {tag["Key"]: tag["Value"] for tag in tag_list(properties)}


def removed_tags(old: Properties, new: Properties) -> list[str]:
    """Returns the keys of tags that a resource has no more."""
    return [key for key in tag_map(old) if key not in tag_map(new)]


def document_text(document: Any) -> str:
    """Returns a policy or another document as APIs take it: text as it is, all else as JSON."""
    return document if isinstance(document, str) else json.dumps(document)


def allowed_members(value: Mapping[str, Any], names: Iterable[str], path: str) -> None:
    """Raises ResourceFailedError for members that a handler would ignore."""
    unknown = sorted(set(value) - set(names))
    if unknown:
        raise not_emulated(", ".join(f"{path}.{name}" for name in unknown))


def not_emulated(what: str) -> ResourceFailedError:
    return ResourceFailedError(
        f"The embedded AWS does not emulate {what}. docs/embedded-aws.md lists what it does."
    )


def _converted(shape: Any, value: Any, path: str) -> Any:
    kind = shape.type_name
    if kind == "structure" and isinstance(value, Mapping):
        unknown = [name for name in value if name not in shape.members]
        if unknown:
            # botocore, too, refuses a member that the API does not have.
            raise ResourceFailedError(
                f"Properties validation failed with message: #: extraneous key [{unknown[0]}] is "
                f"not permitted ({path})"
            )
        return {
            name: _converted(shape.members[name], member, f"{path}.{name}")
            for name, member in value.items()
        }
    if kind == "list" and isinstance(value, list | tuple):
        return [_converted(shape.member, item, path) for item in value]
    if kind == "map" and isinstance(value, Mapping):
        return {key: _converted(shape.value, item, path) for key, item in value.items()}
    try:
        return _scalar(kind, value)
    except (KeyError, TypeError, ValueError):
        raise ResourceFailedError(
            f"Properties validation failed with message: {path}: {value!r} is not of type {kind}"
        ) from None


def _scalar(kind: str, value: Any) -> Any:
    if isinstance(value, dict | list):
        if kind in ("structure", "list", "map", "string", "boolean", "integer"):
            raise TypeError
        return value
    if kind == "boolean" and isinstance(value, str):
        return _BOOLEANS[value.lower()]
    if kind in ("integer", "long") and not isinstance(value, bool):
        return int(value)
    if kind in ("float", "double") and not isinstance(value, bool):
        return float(value)
    return scalar_text(value) if kind == "string" else value
