"""Reads the fields of a JSON object, and collects problems instead of raising them."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from containers.serving.errors import InvalidRequestError
from containers.serving.json_requests import json_type_name
from containers.serving.suggestions import nearest_name_hint

# More problems help nobody, and the answer could become as large as the request.
_MOST_PROBLEMS_SHOWN: Final = 10
_LONGEST_SHOWN_CHARACTERS: Final = 100


class Problems:
    """The problems of one request, each a sentence that names the field."""

    def __init__(self) -> None:
        self._shown: list[str] = []
        self._others = 0

    def add(self, sentence: str) -> None:
        """Adds a problem."""
        if len(self._shown) < _MOST_PROBLEMS_SHOWN:
            self._shown.append(sentence)
        else:
            self._others += 1

    def finish(self) -> None:
        """Raises if there were problems; called after all fields were read.

        Raises:
            InvalidRequestError: the message holds up to ten problems.
        """
        if self._shown:
            more = [f"And {self._others} more problems."] if self._others else []
            raise InvalidRequestError(" ".join([*self._shown, *more]))


class FieldReader:
    """Reads typed fields of one object; a bad field is a problem and reads as its default.

    Args:
        values: the JSON object.
        problems: collects the problems.
        kind: what messages call a field, "field" or "parameter".
        where: path of the object with a final dot, as in `inputs[3].`; empty for objects whose
            fields a user knows by their bare names.
    """

    # Any: JSON.
    def __init__(
        self, values: Mapping[str, Any], problems: Problems, *, kind: str, where: str = ""
    ) -> None:
        self._values = values
        self._problems = problems
        self._kind = kind
        self._where = where
        self._names_read: list[str] = []

    def flag(self, name: str, *, default: bool) -> bool:
        """Returns true or false; `default` if the request does not set the field."""
        value = self._value(name, default)
        if not isinstance(value, bool):
            self._refuse(f"{self._where}{name} must be true or false, not {json_type_name(value)}.")
            return default
        return value

    def whole_number(self, name: str, minimum: int, maximum: int, *, default: int) -> int:
        """Returns a whole number from `minimum` to `maximum`.

        Args:
            name: the field's key.
            minimum: smallest value that is accepted.
            maximum: largest value that is accepted.
            default: returned if the request does not set the field, or after a problem.
        """
        number = self.optional_whole_number(name, minimum, maximum)
        return default if number is None else number

    def optional_whole_number(self, name: str, minimum: int, maximum: int) -> int | None:
        """Returns a whole number, or None if the request does not set the field.

        Args:
            name: the field's key.
            minimum: smallest value that is accepted.
            maximum: largest value that is accepted.
        """
        value = self._value(name, None)
        if value is None and name not in self._values:
            return None
        if isinstance(value, bool) or not isinstance(value, int):
            self._refuse(f"{self._where}{name} must be a whole number, not {shown(value)}.")
        elif not minimum <= value <= maximum:
            self._refuse(
                f"{self._where}{name}={shown(value)} is not within {minimum} to {maximum}."
            )
        else:
            return value
        return None

    def choice(self, name: str, allowed: Sequence[str], *, default: str) -> str:
        """Returns one of the strings in `allowed`.

        Args:
            name: the field's key.
            allowed: the strings, in the order in which a message lists them.
            default: returned if the request does not set the field, or after a problem.
        """
        value = self._value(name, default)
        if value not in allowed or not isinstance(value, str):
            self._refuse(
                f"{self._where}{name} must be one of {', '.join(allowed)}, not {shown(value)}."
            )
            return default
        return value

    def text(self, name: str, *, max_characters: int) -> str:
        """Returns a required string; an empty string is a problem."""
        if name not in self._values:
            self._names_read.append(name)
            self._refuse(f"{self._where}{name} is missing: a string.")
            return ""
        value = self._value(name, "")
        problem = text_problem(f"{self._where}{name}", value, max_characters=max_characters)
        if problem is not None:
            self._refuse(problem)
            return ""
        return str(value)

    def optional_texts(self, name: str, *, max_texts: int) -> tuple[str, ...] | None:
        """Returns an array of strings, which may be empty; None if the request does not set it."""
        value = self._value(name, None)
        if value is None and name not in self._values:
            return None
        if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
            self._refuse(f"{self._where}{name} must be an array of strings.")
            return None
        if len(value) > max_texts:
            self._refuse(f"{self._where}{name} holds {len(value)} texts: at most {max_texts}.")
            return None
        return tuple(value)

    def know(self, *names: str) -> None:
        """Marks fields as known that are read elsewhere."""
        self._names_read += [name for name in names if name not in self._names_read]

    def is_given(self, name: str) -> bool:
        """Returns whether the request sets the field."""
        return name in self._values

    def refuse_unknown(self) -> None:
        """Adds a problem for each field that was never read; called last."""
        for name in self._values:
            if name not in self._names_read:
                hint = nearest_name_hint(name, self._names_read)
                place = f" in {self._where.removesuffix('.')}" if self._where else ""
                self._refuse(
                    f"Unknown {self._kind} {name[:_LONGEST_SHOWN_CHARACTERS]!r}{place}{hint}; "
                    f"allowed: {', '.join(self._names_read)}."
                )

    def _value(self, name: str, default: Any) -> Any:
        self._names_read.append(name)
        return self._values.get(name, default)

    def _refuse(self, sentence: str) -> None:
        self._problems.add(sentence)


def text_problem(name: str, value: object, *, max_characters: int) -> str | None:
    """Returns the problem with a value that must be a string with some text, or None.

    Args:
        name: path of the value, for the message.
        value: the JSON value.
        max_characters: longest string that is accepted.
    """
    if not isinstance(value, str):
        return f"{name} must be a string, not {json_type_name(value)}."
    if not value:
        return f"{name} is an empty string: it must hold some text."
    if len(value) > max_characters:
        return f"{name} has {len(value)} characters; the limit is {max_characters}."
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        return f"{name} holds half of a surrogate pair at character {error.start}."
    return None


def shown(value: object) -> str:
    """Returns a number or string as JSON if it is short enough to read, or else its type."""
    if isinstance(value, str) and len(value) <= _LONGEST_SHOWN_CHARACTERS:
        return ascii(value)
    if isinstance(value, float):
        return f"{value:g}"
    # Not through float: JSON's whole numbers may be larger than any float.
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**20:
        return str(value)
    return json_type_name(value)
