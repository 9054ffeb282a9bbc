"""The fields of config.pbtxt: the messages of ModelConfig, with their types and values.

model_config.json names its sources; `python -m tools.refresh_facts.triton` writes it.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from slipway.facts.tables import read_table

ROOT = "ModelConfig"
"""The message that a whole file is."""


@dataclass(frozen=True, slots=True)
class FieldType:
    """The type of one field.

    Args:
        name: `string`, `bool`, a number's (`int32`), a message's or an enumeration's.
        choice: name of the group of which only one field may be there; empty for none.
        since: first release of AWS's image with the field; empty where all have it.
    """

    name: str
    repeated: bool
    choice: str
    since: str


@functools.cache
def messages() -> Mapping[str, Mapping[str, FieldType]]:
    table = read_table("triton/model_config.json")
    return MappingProxyType(
        {
            message: {
                field: _field_type(text, table["since"].get(f"{message}.{field}", ""))
                for field, text in fields.items()
            }
            for message, fields in table["messages"].items()
        }
    )


@functools.cache
def enums() -> Mapping[str, tuple[str, ...]]:
    table = read_table("triton/model_config.json")
    return MappingProxyType({name: tuple(values) for name, values in table["enums"].items()})


def _field_type(text: str, since: str) -> FieldType:
    before, _, name = text.rpartition(" ")
    return FieldType(name, before == "repeated", before.rstrip("?") if "?" in before else "", since)
