"""Turns the validator's findings into messages with value, allowed values and remedy."""

import json
from collections.abc import Mapping, Sized
from dataclasses import replace
from datetime import date
from typing import Any

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from slipway.codes.code import Code
from slipway.config.fields import Place, find, tag_of
from slipway.config.schema import RESERVED_NAMES, RESERVED_PREFIXES
from slipway.config.sections.base import (
    LARGEST_ENVIRONMENT_BYTES,
    LARGEST_VARIABLE_BYTES,
    LOG_RETENTION_DAYS,
    RESERVED_TAG_PREFIXES,
    TAG_PUNCTUATION,
)
from slipway.errors import FieldPath, Kind, Problem, did_you_mean

_Text = tuple[Code, str, str]


def describe(
    error: ErrorDetails,
    model: type[BaseModel],
    written: Mapping[FieldPath, str],
    prefix: FieldPath = (),
) -> Problem:
    """Describes one finding of pydantic's.

    Args:
        model: the model that was validated, for the names a misspelt field could have meant.
        written: text of unquoted values that are not read as that text, by their field.
        prefix: field of the file that was validated, for `written` and for the problem's field.
    """
    place = find(model, error["loc"])
    place = replace(place, field=(*prefix, *place.field))
    # The key of a mapping has its value's place.
    text = None if error["loc"][-1:] == ("[key]",) else written.get(place.field)
    kind = error["type"]
    context = error.get("ctx") or {}
    if kind == "extra_forbidden":
        return _unknown_field(place)
    if kind == "missing":
        return _missing_field(place)
    if kind in ("union_tag_not_found", "union_tag_invalid"):
        return _tag(place, kind, context)
    if kind not in _TEXTS and kind.endswith(("_type", "_parsing")):
        return _wrong_type(place, kind, error["input"], text)
    code, message, remedy = _TEXTS.get(kind, _OTHER)
    values = {**_values(error["input"], context), "reason": error["msg"]}
    if text is not None:
        values["value"] = text
    remedy = _with_example(remedy.format_map(values), place)
    return Problem(code, Kind.VALUE, message.format_map(values), remedy, place.field)


def _unknown_field(place: Place) -> Problem:
    allowed = sorted(place.section.model_fields) if place.section else []
    hint = did_you_mean(place.field[-1], allowed)
    remedy = f"{hint}Allowed here: {', '.join(allowed)}."
    return Problem(Code.UNKNOWN_FIELD, Kind.SHAPE, "unknown field", remedy, place.field)


def _missing_field(place: Place) -> Problem:
    text = place.info.description if place.info else None
    remedy = _with_example(f"Add it. {text or 'It has no default.'}", place)
    return Problem(Code.MISSING_FIELD, Kind.SHAPE, "required field is missing", remedy, place.field)


def _tag(place: Place, kind: str, context: Mapping[str, Any]) -> Problem:
    """Returns the problem of a field that chooses a section, such as `serving.container`."""
    name = str(context["discriminator"]).strip("'")
    allowed = [tag for section in place.sections if (tag := tag_of(section))]
    listed = ", ".join(allowed)
    field = (*place.field, name)
    if kind == "union_tag_not_found":
        return Problem(
            Code.MISSING_FIELD,
            Kind.SHAPE,
            "required field is missing",
            f"Add it. Allowed: {listed}.",
            field,
        )
    hint = did_you_mean(context["tag"], allowed)
    message = f"{_shown(context['tag'])} is not known here"
    return Problem(Code.UNKNOWN_CHOICE, Kind.VALUE, message, f"{hint}Allowed: {listed}.", field)


def _wrong_type(place: Place, kind: str, value: Any, written: str | None) -> Problem:
    names = {
        "int": "a whole number",
        "float": "a number",
        "string": "a text",
        "bool": "true or false",
        "dict": "a mapping",
        "model": "a mapping",
        "tuple": "a list",
        "list": "a list",
        "model_attributes": "a mapping",
    }
    wanted = names.get(kind.removesuffix("_type").removesuffix("_parsing"), kind)
    remedy = f"Write {wanted}."
    if isinstance(value, str) and wanted.endswith("number") and _is_number(value):
        remedy = "Write the number without quotes."
        if value[:1] == "0" and value.isdigit():
            remedy = f"Write the number without quotes and leading zeros: {int(value)}."
    elif isinstance(value, (int, float, date)) and wanted == "a text":
        remedy = "Put the value in quotes."
    message = f"{written or _shown(value)} is not {wanted}"
    if written not in (None, _shown(value)) and value is not None and wanted == "a text":
        message += f": without quotes, YAML reads it as {_reading(value)}"
    return Problem(Code.WRONG_TYPE, Kind.SHAPE, message, _with_example(remedy, place), place.field)


def _values(value: Any, context: Mapping[str, Any]) -> dict[str, Any]:
    hint = ""
    if "expected" in context:
        allowed = str(context["expected"]).replace(" or ", ", ").split(", ")
        hint = did_you_mean(value, [word.strip("'") for word in allowed])
    shown = {f"shown_{key}": _shown(each) for key, each in context.items()}
    return {
        "hint": hint,
        **context,
        **shown,
        "value": _shown(value),
        "length": len(value) if isinstance(value, Sized) else None,
    }


def _bound(limit: str) -> _Text:
    return Code.OUT_OF_RANGE, f"{{value}} is out of range: {limit}", f"Use a value that is {limit}."


def _length(limit: str) -> _Text:
    return Code.WRONG_LENGTH, f"{{value}} has length {{length}}: {limit}", f"Give {limit}."


_OTHER: _Text = (
    Code.REFUSED_VALUE,
    "{value}: {reason}",
    "See docs/reference.md for what this field takes.",
)
# Kind of finding -> code, message and remedy, with the names of `_values` in braces.
_TEXTS: Mapping[str, _Text] = {
    "greater_than_equal": _bound("at least {ge}"),
    "greater_than": _bound("more than {gt}"),
    "less_than_equal": _bound("at most {le}"),
    "less_than": _bound("less than {lt}"),
    "string_too_long": _length("at most {max_length}"),
    "string_too_short": _length("at least {min_length}"),
    "too_long": _length("at most {max_length}"),
    "too_short": _length("at least {min_length}"),
    "string_pattern_mismatch": (
        Code.WRONG_FORM,
        "{value} does not have the form {pattern}",
        "Write it in that form.",
    ),
    "literal_error": (
        Code.UNKNOWN_CHOICE,
        "{value} is not known here",
        "{hint}Allowed: {expected}.",
    ),
    "unknown_instance_type": (
        Code.UNKNOWN_INSTANCE_TYPE,
        "{value} is not a known hosting instance type",
        "{hint}slipway/facts/instances.json lists the {known} known ones.",
    ),
    "finite_number": (
        Code.OUT_OF_RANGE,
        "{value} is not a finite number",
        "Write a finite number.",
    ),
    "key_of_another_region": (
        Code.KEY_ELSEWHERE,
        "{value} is in another region than the environment",
        "A key encrypts in its own region alone: name a key of the environment's region.",
    ),
    "own_account": (
        Code.REFUSED_VALUE,
        "{value} has the environment's own account",
        "Leave it out: the foundation lets its own account read the artifacts. The list is for "
        "other accounts.",
    ),
    "reserved_name": (
        Code.RESERVED_NAME,
        "{value} is reserved for Slipway's stacks",
        "Reserved names: "
        f"{', '.join([*RESERVED_NAMES, *(f'{prefix}*' for prefix in RESERVED_PREFIXES)])}.",
    ),
    "reserved_tag": (
        Code.REFUSED_TAG,
        "{value} is a reserved key",
        f"Use a key without {' or '.join(f'`{prefix}`' for prefix in RESERVED_TAG_PREFIXES)} in "
        "front.",
    ),
    "control_character": (
        Code.CONTROL_CHARACTER,
        "{value} has the control character {code_point}, which no template can hold",
        "Remove it.",
    ),
    "tag_characters": (
        Code.REFUSED_TAG,
        "{value} has the character {shown_character}, which tags cannot have",
        f"Use letters, digits, spaces and {' '.join(TAG_PUNCTUATION)}",
    ),
    "same_tag": (
        Code.REFUSED_TAG,
        "{shown_one} and {shown_other} are one tag: IAM's keys are not case sensitive",
        "Keep one of them.",
    ),
    "variable_too_large": (
        Code.VARIABLES_TOO_LARGE,
        f"the variable {{name}} has {{size}} bytes: at most {LARGEST_VARIABLE_BYTES}",
        "Shorten it.",
    ),
    "environment_too_large": (
        Code.VARIABLES_TOO_LARGE,
        "the variables have {size} bytes together, names included: at most "
        f"{LARGEST_ENVIRONMENT_BYTES}",
        "Put what is long into a file of the artifact.",
    ),
    "project_path": (
        Code.PATH_OUTSIDE_PROJECT,
        "{value} leads out of the project",
        "Write a path relative to the project's folder, without `..`.",
    ),
    "log_retention": (
        Code.LOG_RETENTION,
        "{value} is not a retention period of CloudWatch Logs",
        f"The nearest is {{near}}. Allowed: {', '.join(map(str, LOG_RETENTION_DAYS))}.",
    ),
    "degree": (
        Code.WRONG_TYPE,
        "{value} is neither a whole number nor `max`",
        "Write a whole number without quotes, or `max`.",
    ),
    "option_value": (
        Code.WRONG_TYPE,
        "{value} is not a text, a number, true or false",
        "A line of serving.properties holds the value: write it in quotes as the handler reads it, "
        'for example `"1,2"` or `\'{{"key": 1}}\'`.',
    ),
    "s3_prefix": (
        Code.NOT_AN_S3_PREFIX,
        "{value} is not a prefix in S3",
        "Write `s3://BUCKET/PREFIX/`, with the final slash.",
    ),
}


def _with_example(remedy: str, place: Place) -> str:
    if place.info is None or not place.info.examples:
        return remedy
    name = next(part for part in reversed(place.field) if isinstance(part, str))
    return f"{remedy} Example: `{name}: {json.dumps(place.info.examples[0])}`."


def _reading(value: Any) -> str:
    """Returns what YAML makes of an unquoted value, for people."""
    if isinstance(value, bool):
        return _shown(value)
    return "a date" if isinstance(value, date) else "a number"


def _shown(value: Any) -> str:
    text = json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
