"""Errors of users, as data.

A `Problem` has the place, the field, the value, the allowed values and the remedy. A `UserError` is
raised only for problems: it means exit code 1 and a report. Any other exception that reaches the
command line is a bug of Slipway: exit code 2 and a traceback.
"""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import PurePath
from typing import Final

from slipway.codes.code import Code, OwnCode

FieldPath = tuple[str | int, ...]


class Kind(StrEnum):
    """What is wrong: the file's form, one value, several values together, or the world around."""

    SHAPE = "shape"
    VALUE = "value"
    COMPATIBILITY = "compatibility"
    STATE = "state"


@dataclass(frozen=True, order=True)
class Location:
    """A place in a file; line and column count from 1, and 0 means the file as a whole."""

    path: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}" if self.line else self.path


@dataclass(frozen=True)
class Problem:
    """One thing to put right.

    Args:
        code: its entry in the table of `slipway.codes`, printed behind the message; or the name of
            the project's own policy that found it.
        message: what is wrong, with the bad value and the limit or the allowed values.
        remedy: what to do, as an instruction or a command.
        field: path of the field in the file, empty for the whole file.
    """

    code: Code | OwnCode
    kind: Kind
    message: str
    remedy: str
    field: FieldPath = ()
    location: Location | None = None

    def at(self, location: Location) -> "Problem":
        return replace(self, location=location)

    def __str__(self) -> str:
        where = [part for part in (str(self.location or ""), dotted(self.field)) if part]
        # Behind the first line: a message may quote a log.
        first, *quoted = ": ".join([*where, self.message]).split("\n")
        return "\n".join([f"{first} [{self.code}]", *quoted, f"    {self.remedy}"])

    def as_json(self) -> dict[str, str | int | None]:
        """Returns the problem for machines; the keys are part of the command line's contract."""
        location = self.location or Location("")
        return {
            "code": str(self.code),
            "kind": self.kind.value,
            "file": location.path or None,
            "line": location.line or None,
            "column": location.column or None,
            "field": dotted(self.field) or None,
            "message": self.message,
            "remedy": self.remedy,
        }


class UserError(Exception):
    """Everything that was found wrong, reported together: at least one problem."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems: Sequence[Problem] = tuple(problems)
        if not self.problems:
            raise ValueError("a UserError needs a problem")
        super().__init__(str(self))

    @classmethod
    def of(
        cls,
        code: Code,
        message: str,
        remedy: str,
        *,
        kind: Kind = Kind.STATE,
        field: FieldPath = (),
    ) -> "UserError":
        return cls([Problem(code, kind, message, remedy, field)])

    def __str__(self) -> str:
        count = len(self.problems)
        heading = "1 problem" if count == 1 else f"{count} problems"
        return "\n".join([heading, *(f"- {problem}" for problem in self.problems)])


def dotted(field: FieldPath) -> str:
    """Returns a field path in its usual notation: `endpoint.instances[0]`."""
    text = ""
    for part in field:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


# What the pipelines of transformers call the same.
_OTHER_NAMES: Final[Mapping[str, str]] = {
    "feature-extraction": "embeddings",
    "ner": "token-classification",
    "text-classification": "sequence-classification",
}


def nearest(word: object, choices: Iterable[str]) -> str | None:
    """Returns the choice that another name or a misspelt word means; None if nothing is near."""
    known, meant = list(choices), _OTHER_NAMES.get(str(word))
    if meant in known:
        return meant
    return next(iter(difflib.get_close_matches(str(word), known, n=1, cutoff=0.6)), None)


def did_you_mean(word: object, choices: Iterable[str]) -> str:
    """Returns the beginning of a remedy that names the nearest choice; empty if nothing is near."""
    guess = nearest(word, choices)
    return f"Did you mean `{guess}`? " if guess else ""


def relative(path: PurePath, root: PurePath) -> str:
    """Returns a path relative to the project, with forward slashes on every system."""
    return (path.relative_to(root) if path.is_relative_to(root) else path).as_posix()
