"""Calls an API with values from a template.

CloudFormation accepts "60" for 60 and "true" for true, because parameters are always strings; the
APIs do not. Names need no translation: a template's nested properties are the API's members.
botocore refuses a member that the API does not have, which fails the resource with the member's
name.
"""

import contextlib
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from botocore.exceptions import ClientError

from slipway.embedded_aws.cloudformation.document import scalar_text
from slipway.embedded_aws.cloudformation.resources.base import (
    Properties,
    ResourceFailedError,
    changed,
)

_BOOLEANS = {"true": True, "false": False}


def call(client: Any, operation: str, parameters: Mapping[str, Any]) -> Any:
    """Calls an operation with parameters converted to the types of its input.

    Args:
        client: boto3 client.
        operation: the operation's name, for example `CreateModel`.
        parameters: the input's members; members that are None are left out.
    """
    model = client.meta.service_model.operation_model(operation)
    given = {name: value for name, value in parameters.items() if value is not None}
    shaped = _converted(model.input_shape, given, operation)
    method = client.meta.method_to_api_mapping
    name = next(python for python, api in method.items() if api == operation)
    return getattr(client, name)(**shaped)


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
    kept = {tag["Key"] for tag in tag_list(new)}
    return [tag["Key"] for tag in tag_list(old) if tag["Key"] not in kept]


def update_tags(
    client: Any,
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
        client: boto3 client of the service.
        identifier: the resource, as the two operations name it.
        old: the resource's properties so far.
        new: its properties from now on.
        add: the operation that adds tags, or changes their values.
        remove: the operation that removes tags by their keys.
        tags: the new tags in the form of the service; None if it is that of templates.
    """

    def carry_out(operation: str, content: Any) -> None:
        # Each has two members: the resource, and its tags or their keys.
        shape = client.meta.service_model.operation_model(operation).input_shape
        call(client, operation, dict(zip(shape.members, (identifier, content), strict=True)))

    if removed := removed_tags(old, new):
        carry_out(remove, removed)
    if tag_list(new) and changed(old, new, "Tags"):
        carry_out(add, tags or tag_list(new))


def document_text(document: Any) -> str:
    """Returns a policy or another document as APIs take it: text as it is, all else as JSON."""
    return document if isinstance(document, str) else json.dumps(document)


def allowed_members(value: Mapping[str, Any], names: Iterable[str], path: str) -> None:
    """Refuses members that a handler would ignore.

    Raises:
        ResourceFailedError: the value has another member.
    """
    unknown = sorted(set(value) - set(names))
    if unknown:
        raise ResourceFailedError(
            f"The embedded AWS does not emulate {', '.join(f'{path}.{name}' for name in unknown)}. "
            "docs/embedded-aws.md lists what it does."
        )


def _converted(shape: Any, value: Any, path: str) -> Any:
    kind = shape.type_name
    if kind == "structure" and isinstance(value, Mapping):
        unknown = [name for name in value if name not in shape.members]
        if unknown:
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
