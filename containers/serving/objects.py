"""The description of a request, of which parsing, problems and the OpenAPI document are made.

A JSON object is described by a named tuple, because one is made for every request. Each annotation
has the type of the attribute, the kind of values that a client may send, and the field's meaning:

    class Parameters(NamedTuple):
        top_k: Annotated[int, WholeNumber(1, 100, default=1), "Labels of each text."]

The attributes have the names and the order of the JSON fields. An argument of a kind, or a meaning,
may also be a function of the endpoint's limits.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, NamedTuple, Self, TypeVar, get_type_hints

from containers.serving.fields import Bound, Kind, Text
from containers.serving.json_requests import parse_json_object
from containers.serving.openapi import Schema, object_schema, reference
from containers.serving.problems import LONGEST_SHOWN_CHARACTERS, Problems
from containers.serving.suggestions import nearest_name_hint

ReadT = TypeVar("ReadT")


@dataclass(frozen=True)
class Object(Kind, Generic[ReadT]):
    """An object with the fields of the named tuple `made`, and no others.

    Problems call a field by the `noun`. Users know fields with another noun than "field" by their
    bare names, so problems name them without a path. `within` reads the `kinds` of the fields from
    the annotations.
    """

    made: type[ReadT]
    name: str
    noun: str = "field"
    kinds: Mapping[str, Kind] = field(default_factory=dict)

    json_types = (dict,)

    @property
    def expected(self) -> str:
        required = [name for name, kind in self.kinds.items() if kind.is_required]
        return f"an object with {' and '.join(required)}" if required else "an object"

    @property
    def expected_some(self) -> str:
        return self.expected

    @property
    def expected_or_several(self) -> str:
        return f"{self.expected}, or an array of them"

    def within(self, limits: object) -> Self:
        kinds: dict[str, Kind] = {}
        for name, hint in get_type_hints(self.made, include_extras=True).items():
            kind, meaning = hint.__metadata__
            kinds[name] = replace(kind, meaning=meaning).within(limits)
        default = self.made(*(kind.default for kind in kinds.values()))
        return replace(super().within(limits), kinds=kinds, default=default)

    def parse(self, body: bytes) -> ReadT:
        """Returns the object in a request's body, or raises one error with every problem."""
        problems = Problems()
        request = self.convert(parse_json_object(body), "", problems)
        problems.finish()
        return request

    def convert(self, value: Any, path: str, problems: Problems) -> ReadT:
        """Returns the named tuple; attributes of fields with problems have no meaning."""
        where = f"{path}." if path and self.noun == "field" else ""
        found = []
        for name, kind in self.kinds.items():
            if name in value:
                found.append(kind.read(value[name], where + name, problems))
                continue
            found.append(kind.default)
            if kind.is_required:
                problems.add(name, f"{where or 'The field '}{name} is missing: {kind.expected}.")
        for name in value:
            if name not in self.kinds:
                problems.add("", "" if problems.are_too_many else self._unknown(name, where))
        return self.made(*found)

    def schema(self) -> Schema:
        return self.or_null(self.value_schema())

    def value_schema(self) -> Schema:
        return reference(self.name)

    def components(self) -> dict[str, Schema]:
        properties = {name: kind.schema() for name, kind in self.kinds.items()}
        required = [name for name, kind in self.kinds.items() if kind.is_required]
        components = {self.name: object_schema(properties, required=required) | self.description()}
        for kind in self.kinds.values():
            components |= kind.components()
        return components

    def _unknown(self, name: str, where: str) -> str:
        shown = name[:LONGEST_SHOWN_CHARACTERS]
        place = f" in {where.removesuffix('.')}" if where else ""
        offered = [name for name, kind in self.kinds.items() if kind.is_offered]
        hint = nearest_name_hint(shown, offered)
        return f"Unknown {self.noun} {shown!r}{place}{hint}; allowed: {', '.join(offered)}."


class Inputs(NamedTuple, Generic[ReadT]):
    """The inputs of a request, at least one; `is_list` says whether they came as an array."""

    values: tuple[ReadT, ...]
    is_list: bool

    def name(self, index: int) -> str:
        return f"inputs[{index}]" if self.is_list else "inputs"


@dataclass(frozen=True)
class OneOrMany(Kind):
    """The field `inputs`: one value, or several, up to the endpoint's max_queue_length."""

    item: Text | Object[Any]
    max_items: Bound

    @property
    def expected(self) -> str:
        return self.item.expected_or_several

    @property
    def json_types(self) -> tuple[type, ...]:
        return (list, *self.item.json_types)

    def problem(self, value: Any) -> str | None:
        if value == []:
            return f" is an empty array: it must hold {self.item.expected_some}."
        if isinstance(value, list) and len(value) > self.max_items:
            limit = f"{self.max_items}, the endpoint's max_queue_length"
            return f" holds {len(value)} texts: it must hold 1 to {limit}."
        return None

    def convert(self, value: Any, path: str, problems: Problems) -> Inputs[Any]:
        read = self.item.read
        if not isinstance(value, list):
            return Inputs((read(value, path, problems),), is_list=False)
        each = [read(one, f"{path}[{index}]", problems) for index, one in enumerate(value)]
        return Inputs(tuple(each), is_list=True)

    def value_schema(self) -> Schema:
        one = self.item.schema()
        several = {"type": "array", "items": one, "minItems": 1, "maxItems": self.max_items}
        return {"oneOf": [one, several]}

    def components(self) -> dict[str, Schema]:
        return self.item.components()


def request_description(made: type[ReadT], limits: object) -> Object[ReadT]:
    return Object(made, "Request").within(limits)
