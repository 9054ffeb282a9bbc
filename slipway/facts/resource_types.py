"""What AWS's provider schemas say of the types of CloudFormation resources in Slipway's stacks."""

import functools
from collections.abc import Mapping

from slipway.facts.tables import read_table


@functools.cache
def provider_schemas() -> Mapping[str, Mapping[str, list[str]]]:
    """Returns the committed table: maps a type to its `required` and `create_only` properties."""
    table: dict[str, dict[str, list[str]]] = read_table("resource_types.json")["types"]
    return table
