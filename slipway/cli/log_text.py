"""Lines of a container's log, for people."""

from slipway.json_text import parse_json


def readable(text: str) -> str:
    """Returns a structured line of Slipway's containers as words; any other line unchanged."""
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
