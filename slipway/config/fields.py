"""Finds the section and the field of the schema for a path in a file."""

import typing
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from slipway.errors import FieldPath

Model = type[BaseModel]


@dataclass(frozen=True)
class Place:
    """The part of the schema that a path leads to.

    Args:
        field: the path as in the file; the validator's own path has the tag of each union in it.
        section: the section with the path's last named field; None outside the schema.
        sections: the sections at the path: several for a union, none if it is no section.
    """

    field: FieldPath
    section: Model | None
    info: FieldInfo | None
    sections: tuple[Model, ...]


def find(model: Model, path: Sequence[str | int]) -> Place:
    """Follows a path of the validator, with names, list indices and tags of unions."""
    place = Place((), None, None, (model,))
    for part in path:
        if part == "[key]":
            continue  # a mapping's key is where the entry is
        chosen = [section for section in place.sections if tag_of(section) == part]
        if len(place.sections) > 1 and chosen:
            place = Place(place.field, place.section, place.info, tuple(chosen))
        elif isinstance(part, int):
            place = Place((*place.field, part), place.section, place.info, place.sections)
        else:
            section = place.sections[0] if len(place.sections) == 1 else None
            info = section.model_fields.get(part) if section else None
            inner = tuple(sections_in(info.annotation)) if info else ()
            place = Place((*place.field, part), section, info, inner)
    return place


def tag_of(section: Model) -> str | None:
    """Returns the value that distinguishes a section in a union, or None."""
    for info in section.model_fields.values():
        if typing.get_origin(info.annotation) is Literal and info.is_required():
            values = typing.get_args(info.annotation)
            if len(values) == 1:
                return str(values[0])
    return None


def sections_in(annotation: Any) -> list[Model]:
    """Returns the sections that a field's annotation has, wherever they stand in it."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    # Unions, lists, and what is annotated: wherever a section can hide.
    inner = typing.get_args(annotation)
    if typing.get_origin(annotation) is Literal:
        return []
    return [section for member in inner for section in sections_in(member)]
