"""The resource types that the embedded AWS implements."""

from collections.abc import Iterable
from itertools import groupby

from slipway.embedded_aws.cloudformation.resources.base import ResourceHandler
from slipway.embedded_aws.cloudformation.resources.catalog import CUSTOM_TYPES, own_handlers
from tools.reference.tables import table


def blocks() -> dict[str, str]:
    """Returns the blocks of the page by their names."""
    ordered = sorted(own_handlers(), key=lambda handler: handler.type_name)
    services = groupby(ordered, key=lambda handler: handler.type_name.split("::")[1])
    tables = [f"## {service}\n\n{_table(handlers)}" for service, handlers in services]
    return {"types": "\n\n".join(tables), "custom resources": _codes(CUSTOM_TYPES)}


def _table(handlers: Iterable[ResourceHandler]) -> str:
    return table(
        "type | properties | `Fn::GetAtt`",
        (
            (f"`{each.type_name}`", _codes(each.properties), _codes(each.attributes))
            for each in handlers
        ),
    )


def _codes(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))
