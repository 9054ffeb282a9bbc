"""Keeps the valid parts of an invalid config, so that the rules can still check them together.

No value is invented. A field that is wrong, missing or written twice has no value: reading it
raises `UnknownValueError`. A rule that needs it then finds nothing, and every other rule finds all
that it would find in a valid config. A field has no default either if a field of the file that
is not known may be this one, misspelt or in another section.
"""

import functools
import typing
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

from pydantic import ValidationError, create_model

from slipway.codes.code import Code
from slipway.config.fields import sections_in, tag_of
from slipway.config.sections.base import Section, UnknownValueError
from slipway.errors import FieldPath, Problem, nearest

_SectionT = TypeVar("_SectionT", bound=Section)
_UNKNOWN = object()


class KnownItems(dict[str, Any]):
    """A mapping some of whose keys have no known value: reading one raises `UnknownValueError`."""

    def __init__(self, known: Mapping[str, Any], unknown: Collection[str]) -> None:
        super().__init__(known)
        self._unknown = frozenset(unknown)

    def __contains__(self, key: object) -> bool:
        self._check(key)
        return super().__contains__(key)

    def __getitem__(self, key: str) -> Any:
        self._check(key)
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        self._check(key)
        return super().get(key, default)

    def _check(self, key: object) -> None:
        if key in self._unknown:
            raise UnknownValueError(str(key))


class UnknownItems(tuple[Any, ...]):
    """A list of which nothing is known, not even its length."""

    __slots__ = ()

    def _refuse(self, *_: object) -> NoReturn:
        raise UnknownValueError("items")

    __iter__ = __getitem__ = __len__ = __bool__ = __contains__ = _refuse


@dataclass(frozen=True)
class Doubts:
    """Values of a file that count as unknown.

    Args:
        fields: fields whose value is valid and in doubt, because they are written twice.
        names: names of the fields that no section has.
    """

    fields: frozenset[FieldPath]
    names: frozenset[str]

    @classmethod
    def of(cls, text: Collection[Problem], values: Collection[Problem]) -> "Doubts":
        unknown = (problem for problem in values if problem.code is Code.UNKNOWN_FIELD)
        return cls(
            frozenset(problem.field for problem in text),
            frozenset(str(problem.field[-1]) for problem in unknown),
        )


def valid_subset(
    section: type[_SectionT], content: Mapping[str, Any], doubts: Doubts, path: FieldPath = ()
) -> _SectionT:
    """Returns a section whose wrong and missing fields raise `UnknownValueError`."""
    values: dict[str, Any] = {}
    fields = section.model_fields
    meant = {nearest(name, fields) for name in content if name not in fields} | doubts.names
    for name, info in fields.items():
        value = _UNKNOWN
        if name in content:
            value = _known_value(section, name, content[name], doubts, path)
        elif not info.is_required() and name not in meant:
            value = info.get_default(call_default_factory=True)
            if info.validate_default:  # it may be valid beside some other values alone
                value = _known_value(section, name, value, doubts, path)
        if value is not _UNKNOWN:
            values[name] = value
    found = section.model_construct(set(values) & set(content), **values)
    for name in fields.keys() - values.keys():
        found.__dict__.pop(name, None)  # a default that the constructor filled in
    return found


def _known_value(
    section: type[Section],
    name: str,
    value: Any,
    doubts: Doubts,
    path: FieldPath,
) -> Any:
    field = (*path, name)
    if field in doubts.fields:
        return _UNKNOWN
    annotation = section.model_fields[name].annotation
    kinds = sections_in(annotation)
    # A section may lack the field that a name elsewhere was meant for.
    is_doubtful = bool(kinds and doubts.names)
    is_doubtful |= any(each[: len(field)] == field for each in doubts.fields)
    valid = _valid(section, name, value)
    if valid is not _UNKNOWN and (not is_doubtful or valid is None):
        return valid
    if isinstance(value, Mapping):
        if not kinds:
            takes = _takes(dict, annotation)
            return _known_items(section, name, value, doubts, field) if takes else _UNKNOWN
        # A section in the place of a list of sections: its dash is missing.
        kind = None if _takes(tuple, annotation) else _kind(kinds, value)
        return _UNKNOWN if kind is None else valid_subset(kind, value, doubts, field)
    is_list = isinstance(value, list) and _takes(tuple, annotation)
    if not kinds or not is_list:
        return _UNKNOWN
    found = []
    for index, item in enumerate(value):
        kind = _kind(kinds, item) if isinstance(item, Mapping) else None
        if kind is None:
            return _UNKNOWN
        found.append(valid_subset(kind, item, doubts, (*field, index)))
    return tuple(found)


def _known_items(
    section: type[Section],
    name: str,
    value: Mapping[str, Any],
    doubts: Doubts,
    field: FieldPath,
) -> Any:
    known: dict[str, Any] = {}
    for key, item in value.items():
        valid = _valid(section, name, {key: item})
        if valid is not _UNKNOWN and (*field, key) not in doubts.fields:
            known |= valid
    unknown = value.keys() - known.keys()
    # Each item may be right by itself, and all together wrong: too many, for example.
    return KnownItems(known, unknown) if unknown else _UNKNOWN


def _takes(container: type, annotation: Any) -> bool:
    return typing.get_origin(annotation) is container or any(
        _takes(container, part) for part in typing.get_args(annotation)
    )


def _kind(kinds: Collection[type[Any]], content: Mapping[str, Any]) -> type[Section] | None:
    if len(kinds) == 1:
        return next(iter(kinds))
    return next((kind for kind in kinds if tag_of(kind) in content.values()), None)


def _valid(section: type[Section], name: str, value: Any) -> Any:
    try:
        return getattr(_alone(section, name).model_validate({name: value}), name)
    except ValidationError:
        return _UNKNOWN


@functools.cache
def _alone(section: type[Section], name: str) -> type[Section]:
    """Returns a section with one field, which is validated as in the section itself."""
    info = section.model_fields[name]
    fields: dict[str, Any] = {name: (info.annotation, info)}
    return create_model(f"{section.__name__}_{name}", __base__=Section, **fields)
