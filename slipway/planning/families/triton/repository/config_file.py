"""One config.pbtxt: read, and held against the fields and types of ModelConfig.

A model's later checks read the same tree. A value of a wrong type is left out there, so that one
mistake is one problem.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from slipway.codes.code import Code
from slipway.errors import Kind, Location, Problem, nearest
from slipway.facts.triton.model_config import ROOT, FieldType, enums, messages
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

_BITS: Final = {
    "int32": (32, True),
    "int64": (64, True),
    "uint32": (32, False),
    "uint64": (64, False),
}
_MOST_LISTED: Final = 20


@dataclass(frozen=True)
class ConfigFile:
    """The place of a config.pbtxt, which problems name.

    Args:
        path: of the file, relative to the project.
        release: of AWS's image, which knows the fields of its time.
    """

    path: str
    release: str

    def problem(self, code: Code, position: Position, message: str, remedy: str) -> Problem:
        """Makes the problem of a place in the file.

        Args:
            code: its entry in the table of `slipway.codes`.
            position: line and column.
            message: what is wrong, with the bad value.
            remedy: what to do, as an instruction.
        """
        location = Location(self.path, position.line, position.column)
        return Problem(code, Kind.VALUE, message, remedy, location=location)


def read_config(
    directory: Directory, name: str, release: str
) -> tuple[ConfigFile, Message | None, list[Problem]]:
    """Returns a file, its fields of the right type, and its problems; None if it cannot be read.

    Args:
        directory: the repository.
        name: of the file, within the repository.
        release: of AWS's image, `YY.MM`.
    """
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


def _checked(
    file: ConfigFile, message: Message, kind: str, report: Callable[[Problem], None]
) -> Message:
    """Returns a message with the fields that Triton would take; reports all others."""
    known, kept = messages()[kind], list[Field]()
    singular: dict[str, Position] = {}
    choices: dict[str, str] = {}
    for field in message.fields:
        declared = known.get(field.name)
        if declared is None or declared.since > file.release:
            report(_unknown(file, field, kind, declared))
            continue
        if not declared.repeated:
            first = singular.setdefault(field.name, field.position)
            other = choices.setdefault(declared.choice or field.name, field.name)
            if first is not field.position:
                report(
                    file.problem(
                        Code.DUPLICATE_KEY,
                        field.position,
                        f"`{field.name}` is there twice, and the first time in line {first.line}",
                        "Remove one of them: Triton refuses the file.",
                    )
                )
                continue
            if other != field.name:
                report(
                    file.problem(
                        Code.TRITON_MODEL,
                        field.position,
                        f"`{field.name}` and `{other}` exclude each other",
                        "Remove one of them.",
                    )
                )
                continue
        if isinstance(field.value, Message) and declared.name in messages():
            value = _checked(file, field.value, declared.name, report)
            kept.append(Field(field.name, value, field.position))
        elif (problem := _wrong(file, field, declared)) is not None:
            report(problem)
        else:
            kept.append(field)
    names = {field.name for field in message.fields} - {field.name for field in kept}
    return Message(tuple(kept), message.position, frozenset(names))


def _unknown(file: ConfigFile, field: Field, kind: str, declared: FieldType | None) -> Problem:
    where = "config.pbtxt" if kind == ROOT else f"`{_short(kind)}`"
    if declared is not None:
        return file.problem(
            Code.UNKNOWN_FIELD,
            field.position,
            f"Triton {file.release} does not know the field `{field.name}` of {where}",
            f"Remove it, or set `version` to {declared.since} or later.",
        )
    names = [name for name, each in messages()[kind].items() if each.since <= file.release]
    guess = nearest(field.name, names)
    hint = f"Did you mean `{guess}`? " if guess else ""
    has = f"There are: {', '.join(names) or 'none'}."
    return file.problem(
        Code.UNKNOWN_FIELD,
        field.position,
        f"there is no field `{field.name}` in {where}",
        hint + has if len(names) <= _MOST_LISTED or not guess else hint.strip(),
    )


def _wrong(file: ConfigFile, field: Field, declared: FieldType) -> Problem | None:
    """Returns the problem of a value; None if Triton takes it."""
    value, name = field.value, declared.name
    if name in messages():
        return _wrong_type(file, field, f"fields in braces: `{field.name} {{ ... }}`")
    if isinstance(value, Message):
        return _wrong_type(file, field, _wanted(name))
    if name in enums():
        return _wrong_choice(file, field.name, value, enums()[name])
    if name in _BITS:
        return _wrong_number(file, field, value, *_BITS[name])
    fits = {
        "string": value.kind == "text",
        "bool": value.kind != "text" and value.text in TRUE + FALSE,
        "float": _is_float(value),
        "double": _is_float(value),
    }
    return None if fits[name] else _wrong_type(file, field, _wanted(name))


def _wrong_number(
    file: ConfigFile, field: Field, value: Scalar, bits: int, is_signed: bool
) -> Problem | None:
    number = integer(value)
    if number is None:
        return _wrong_type(file, field, "a whole number")
    least, most = (-(1 << bits - 1), (1 << bits - 1) - 1) if is_signed else (0, (1 << bits) - 1)
    if least <= number <= most:
        return None
    return file.problem(
        Code.OUT_OF_RANGE,
        value.position,
        f"`{field.name}` is {value.text}; it lies between {least} and {most}",
        "Use a number within the limits.",
    )


def _wrong_choice(
    file: ConfigFile, name: str, value: Scalar, choices: tuple[str, ...]
) -> Problem | None:
    number = integer(value)
    is_known = value.text in choices if value.kind == "name" else number in range(len(choices))
    if is_known and value.kind != "text":
        return None
    guess = nearest(value.text, choices)
    hint = f"Did you mean `{guess}`? " if guess else ""
    quoted = " in quotes" if value.kind == "text" and value.text in choices else ""
    return file.problem(
        Code.UNKNOWN_CHOICE,
        value.position,
        f"`{name}` has no value {value.text!r}{quoted}",
        f"Write `{value.text}` without quotes."
        if quoted
        else f"{hint}There are: {', '.join(choices)}.",
    )


def _wrong_type(file: ConfigFile, field: Field, wanted: str) -> Problem:
    value = field.value
    if isinstance(value, Message):
        found = "fields in braces"
    else:
        found = {"text": f"the text {value.text!r}", "number": value.text, "name": value.text}[
            value.kind
        ]
    return file.problem(
        Code.WRONG_TYPE,
        value.position,
        f"`{field.name}` is {found}, and it takes {wanted}",
        "Correct the value.",
    )


def _wanted(name: str) -> str:
    if name == "string":
        return "a text in quotes"
    if name == "bool":
        return "true or false"
    if name in enums():
        return f"one of {', '.join(enums()[name])}"
    return "a whole number" if name in _BITS else "a number"


def _is_float(value: Scalar) -> bool:
    try:
        number = float(value.text.lower().removesuffix("f") if value.kind == "number" else "nan")
    except ValueError:
        # A hexadecimal number is a whole one; `-inf` lost its last letter above.
        return integer(value) is not None or value.text.lower() in ("-inf", "-infinity", "-nan")
    is_named = value.text.lower() in ("inf", "infinity", "nan")
    return is_named if value.kind == "name" else value.kind == "number" and not math.isnan(number)


def _short(kind: str) -> str:
    return kind.rpartition(".")[2].removesuffix("Entry")
