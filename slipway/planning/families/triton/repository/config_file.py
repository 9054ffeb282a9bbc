"""One config.pbtxt: read, and held against the fields and types of ModelConfig.

A model's later checks read the same tree. A value of a wrong type is left out there, so that one
mistake is one problem.
"""

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Final

from slipway.codes.code import Code
from slipway.errors import Kind, Location, Problem, did_you_mean
from slipway.facts.triton.model_config import ROOT, enums, messages
from slipway.planning.directory import LARGEST_TEXT_BYTES, Directory
from slipway.planning.families.triton.repository.text_format import (
    FALSE,
    TRUE,
    Field,
    Message,
    Position,
    Scalar,
    TextFormatError,
    integer,
    parse,
)

NAME = "config.pbtxt"

_LIMITS: Final = {
    "int32": (-(1 << 31), (1 << 31) - 1),
    "int64": (-(1 << 63), (1 << 63) - 1),
    "uint32": (0, (1 << 32) - 1),
    "uint64": (0, (1 << 64) - 1),
}
_FLOAT: Final = re.compile(r"-?(?:[0-9.].*|inf|infinity|nan)", re.IGNORECASE)
_FORMS: Final = {
    "string": re.compile(".*", re.DOTALL),
    "bool": re.compile("|".join(TRUE + FALSE)),
    "float": _FLOAT,
    "double": _FLOAT,
}
_WANTED: Final = {
    "string": "a text in quotes",
    "bool": "true or false",
    "float": "a number",
    "double": "a number",
}
_MOST_LISTED: Final = 20
# The arguments of ConfigFile.problem.
_Fault = tuple[Code, Position, str, str]


@dataclass(frozen=True)
class ConfigFile:
    """The path of a config.pbtxt, and AWS's release, which knows the fields of its time."""

    path: str
    release: str

    def problem(self, code: Code, position: Position, message: str, remedy: str) -> Problem:
        """Makes the problem of a place in the file."""
        location = Location(self.path, position.line, position.column)
        return Problem(code, Kind.VALUE, message, remedy, location=location)


def read_config(
    directory: Directory, name: str, release: str
) -> tuple[ConfigFile, Message | None, list[Problem]]:
    """Returns a file, its fields of the right type, and its problems; None if it cannot be read."""
    file = ConfigFile(f"{directory.path}/{name}", release)
    size_bytes = directory.sizes_bytes[name]
    if size_bytes > LARGEST_TEXT_BYTES:
        message = f"the file is {size_bytes:,} bytes; at most {LARGEST_TEXT_BYTES:,} are read"
        remedy = "Put data into files of their own; config.pbtxt has settings alone."
        place = Location(file.path)
        return file, None, [Problem(Code.FILE_TOO_LARGE, Kind.SHAPE, message, remedy, (), place)]
    try:
        root = parse(directory.texts[name].decode())
    except UnicodeDecodeError as error:
        line = directory.texts[name].count(b"\n", 0, error.start) + 1
        found = (f"byte {error.start} is not UTF-8", Position(line, 1))
    except TextFormatError as error:
        found = (error.message, error.position)
    else:
        problems: list[Problem] = []
        return file, _checked(file, root, ROOT, problems.append), problems
    message, position = found
    problem = file.problem(
        Code.NOT_TEXT_FORMAT,
        position,
        f"not protobuf's text format: {message}",
        "Correct it: `name: value`, `name { ... }`, or `name [ ... ]`, with texts in quotes.",
    )
    return file, None, [problem]


def one_of(word: str, known: Collection[str], has: str = "There are") -> str:
    """Returns the remedy for an unknown name: the nearest one, and all that are known."""
    hint = did_you_mean(word, known)
    return f"{hint}{has}: {', '.join(known) or 'none'}."


def _checked(
    file: ConfigFile, message: Message, kind: str, report: Callable[[Problem], None]
) -> Message:
    """Returns a message with the fields that Triton would take; reports all others."""
    kept, seen = list[Field](), dict[str, Field]()
    for field in message.fields:
        declared = messages()[kind].get(field.name)
        if declared is None or declared.since > file.release:
            report(file.problem(*_unknown(field, kind, file.release)))
            continue
        if not declared.repeated:
            first = seen.setdefault(declared.choice or field.name, field)
            if first is not field or field.is_list:
                fault = _second(field, first) if first is not field else _a_list(field)
                report(file.problem(*fault))
                continue
        values = list[Scalar | Message]()
        for value in field.values:
            wrong = _wrong(field.name, value, declared.name)
            if wrong is not None:
                report(file.problem(*wrong))
            elif isinstance(value, Message):
                values.append(_checked(file, value, declared.name, report))
            else:
                values.append(value)
        if values:
            kept.append(replace(field, values=tuple(values)))
    names = {field.name for field in message.fields} - {field.name for field in kept}
    return Message(tuple(kept), message.position, frozenset(names))


def _unknown(field: Field, kind: str, release: str) -> _Fault:
    known, name = messages()[kind], field.name
    where = f"`{kind.rpartition('.')[2].removesuffix('Entry')}`" if kind != ROOT else "config.pbtxt"
    if name in known:
        message = f"Triton {release} does not know the field `{name}` of {where}"
        remedy = f"Remove it, or set `version` to {known[name].since} or later."
    else:
        message = f"there is no field `{name}` in {where}"
        names = [each for each, declared in known.items() if declared.since <= release]
        guess = did_you_mean(name, names)
        remedy = guess.rstrip() if guess and len(names) > _MOST_LISTED else one_of(name, names)
    return Code.UNKNOWN_FIELD, field.position, message, remedy


def _second(field: Field, first: Field) -> _Fault:
    """Returns the fault of a field that stands beside itself, or beside one that excludes it."""
    if first.name != field.name:
        message = f"`{field.name}` and `{first.name}` exclude each other"
        return Code.TRITON_MODEL, field.position, message, "Remove one of them."
    line = first.position.line
    message = f"`{field.name}` is there twice, and the first time in line {line}"
    remedy = "Remove one of them: Triton refuses the file."
    return Code.DUPLICATE_KEY, field.position, message, remedy


def _a_list(field: Field) -> _Fault:
    message = f"`{field.name}` is a list, and it takes one value"
    return Code.WRONG_TYPE, field.position, message, "Remove the brackets."


def _wrong(name: str, value: Scalar | Message, kind: str) -> _Fault | None:
    if isinstance(value, Message):
        fits = kind in messages()
    elif kind in enums():
        return _wrong_choice(name, value, enums()[kind])
    elif kind in _LIMITS and (number := integer(value)) is not None:
        least, most = _LIMITS[kind]
        message = f"`{name}` is {value.text}; it lies between {least} and {most}"
        remedy = "Use a number within the limits."
        is_within = least <= number <= most
        return None if is_within else (Code.OUT_OF_RANGE, value.position, message, remedy)
    else:
        fits = (value.kind == "text") == (kind == "string") and (
            kind in _FORMS and _FORMS[kind].fullmatch(value.text) is not None
        )
    return None if fits else _wrong_type(name, value, kind)


def _wrong_choice(name: str, value: Scalar, choices: tuple[str, ...]) -> _Fault | None:
    is_known = value.text in choices
    if value.kind == "name" and is_known:
        return None
    if value.kind == "number" and integer(value) in range(len(choices)):
        return None
    is_quoted = value.kind == "text" and is_known
    message = f"`{name}` has no value {value.text!r}{' in quotes' if is_quoted else ''}"
    remedy = f"Write `{value.text}` without quotes." if is_quoted else one_of(value.text, choices)
    return Code.UNKNOWN_CHOICE, value.position, message, remedy


def _wrong_type(name: str, value: Scalar | Message, kind: str) -> _Fault:
    if kind in messages():
        wanted = f"fields in braces: `{name} {{ ... }}`"
    elif kind in enums():
        wanted = f"one of {', '.join(enums()[kind])}"
    else:
        wanted = _WANTED.get(kind, "a whole number")
    if isinstance(value, Message):
        found = "fields in braces"
    else:
        found = f"the text {value.text!r}" if value.kind == "text" else value.text
    message = f"`{name}` is {found}, and it takes {wanted}"
    return Code.WRONG_TYPE, value.position, message, "Correct the value."
