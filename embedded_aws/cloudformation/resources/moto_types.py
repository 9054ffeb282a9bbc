"""The types that moto's own CloudFormation classes implement.

Those classes read the properties they know and ignore the rest; here a property that was not read
fails the resource. The classes only create and delete: a change replaces the resource, as
CloudFormation does if it cannot change a resource in place.
"""

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

import moto.cloudformation.parsing as moto_parsing
from moto.core.exceptions import ServiceException

from slipway.embedded_aws.cloudformation.resources.base import (
    Physical,
    Properties,
    ResourceContext,
    ResourceFailedError,
    ResourceHandler,
    not_emulated,
)

# Custom resources are Lambda functions, which moto runs in Docker.
_EXCLUDED_PREFIXES = ("AWS::CloudFormation::", "AWS::Lambda::", "AWS::SageMaker::", "Custom::")


def moto_handlers() -> list[ResourceHandler]:
    """Returns a handler of each type that moto can create and delete."""
    return [
        MotoHandler(type_name, model)
        for type_name, model in sorted(moto_parsing.get_model_map().items())
        if not type_name.startswith(_EXCLUDED_PREFIXES)
        and type_name.startswith("AWS::")
        and not _is_abstract(model.create_from_cloudformation_json)
    ]


class MotoHandler(ResourceHandler):
    def __init__(self, type_name: str, model: Any) -> None:
        self.type_name = type_name
        self._model = model
        self._objects: dict[tuple[str, str], Any] = {}

    def create(self, context: ResourceContext, properties: Properties) -> Physical:
        name_property = self._model.cloudformation_name_type()
        name = properties.get(name_property) if name_property else None
        watched = _WatchedProperties(properties)
        try:
            made = self._model.create_from_cloudformation_json(
                name or context.physical_name(maximum=32),
                {"Type": self.type_name, "Properties": watched},
                context.identity.account_id,
                context.region,
                LogicalId=context.logical_id,
                StackId=context.identity.id,
                ResourceType=self.type_name,
            )
        except ServiceException as error:
            raise ResourceFailedError(str(error.message)) from None
        physical_id = str(made.physical_resource_id)
        self._objects[context.region, physical_id] = made
        context.initiated(physical_id)
        unread = sorted(set(properties) - watched.read)
        if unread:
            raise not_emulated(f"{', '.join(unread)} of {self.type_name}")
        return Physical(physical_id, _MotoAttributes(made))

    def delete(self, context: ResourceContext, properties: Properties) -> None:
        made = self._objects.get((context.region, context.physical_id))
        remove = getattr(made, "delete", None)
        where = (context.identity.account_id, context.region)
        try:
            if remove is not None and len(inspect.signature(remove).parameters) == len(where):
                remove(*where)
            elif not _is_abstract(self._model.delete_from_cloudformation_json):
                self._model.delete_from_cloudformation_json(
                    context.physical_id,
                    {"Type": self.type_name, "Properties": dict(properties)},
                    *where,
                )
        except ServiceException as error:
            if "NotFound" not in str(error.code) and "NoSuch" not in str(error.code):
                raise ResourceFailedError(str(error.message)) from None
        self._objects.pop((context.region, context.physical_id), None)

    def has_attribute(self, name: str) -> bool:
        return bool(self._model.has_cfn_attr(name))


class _MotoAttributes(Mapping[str, Any]):
    """Attributes of a moto object, read on access."""

    def __init__(self, made: Any) -> None:
        self._made = made

    def __getitem__(self, name: str) -> Any:
        try:
            return self._made.get_cfn_attribute(name)
        except Exception:
            # moto raises a different exception type for each service here.
            raise KeyError(name) from None

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


class _WatchedProperties(dict[str, Any]):
    """Properties that record which of them were read."""

    def __init__(self, properties: Properties) -> None:
        super().__init__(properties)
        self.read: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        self.read.add(name)
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        self.read.add(name)
        return super().get(name, default)

    def pop(self, name: str, *default: Any) -> Any:
        self.read.add(name)
        return super().pop(name, *default)

    def items(self) -> Any:
        self.read |= set(self)
        return super().items()

    def copy(self) -> dict[str, Any]:
        self.read |= set(self)
        return dict(self)


def _is_abstract(method: Any) -> bool:
    return bool(getattr(method, "__isabstractmethod__", False))
