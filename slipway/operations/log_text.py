"""Lines of a container's log, for people."""

import re

from slipway.json_text import parse_json

_COLOUR = re.compile(r"\x1b\[[\d;]*m")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def readable(text: str) -> str:
    """Returns a line of a log in words, with control characters spelled: a terminal obeys them."""
    return _CONTROL.sub(lambda found: repr(found[0])[1:-1], _COLOUR.sub("", _words(text)))


def _words(text: str) -> str:
    try:
        fields = parse_json(text)
    except ValueError:
        return text
    if not isinstance(fields, dict) or not {"level", "event"} <= fields.keys():
        return text
    fields.pop("time", None)
    head = f"{fields.pop('level')} {fields.pop('event')}"
    message = fields.pop("message", None)
    said = [head if message is None else f"{head}: {message}"]
    return " ".join([*said, *(f"{name}={value}" for name, value in fields.items())])
