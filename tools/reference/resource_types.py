"""The resource types that the embedded AWS implements."""

from collections.abc import Iterable

from slipway.embedded_aws.cloudformation.resources.catalog import CUSTOM_TYPES, own_handlers
from tools.reference.tables import table


def blocks() -> dict[str, str]:
    ordered = sorted(own_handlers(), key=lambda handler: handler.type_name)
    rows = (
        (f"`{each.type_name}`", _codes(each.properties), _codes(each.attributes))
        for each in ordered
    )
    types = table("type | properties | `Fn::GetAtt`", rows)
    return {"types": types, "custom resources": _codes(CUSTOM_TYPES)}


def _codes(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))
