"""Turns the validator's findings into messages with value, allowed values and remedy."""

import json
from collections.abc import Callable, Mapping
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
from slipway.errors import Kind, Problem, nearest

_Described = tuple[Code, Kind, str, str]
_Describe = Callable[[Any, Mapping[str, Any]], _Described]


def describe(error: ErrorDetails, model: type[BaseModel]) -> Problem:
    """Describes one finding of pydantic's.

    Args:
        error: the finding.
        model: the model that was validated, for the names a misspelt field could have meant.
    """
    place = find(model, error["loc"])
    kind = error["type"]
    context = error.get("ctx") or {}
    if kind == "extra_forbidden":
        return _unknown_field(place)
    if kind == "missing":
        return _missing_field(place)
    if kind in ("union_tag_not_found", "union_tag_invalid"):
        return _tag(place, kind, context)
    writer = _WRITERS.get(kind)
    if writer is not None:
        code, category, message, remedy = writer(error["input"], context)
    elif kind.endswith(("_type", "_parsing")):
        code, category, message, remedy = _wrong_type(kind, error["input"])
    else:
        code, category = Code.REFUSED_VALUE, Kind.VALUE
        message = f"{_shown(error['input'])}: {error['msg']}"
        remedy = "See docs/reference.md for what this field takes."
    return Problem(code, category, message, _with_example(remedy, place), place.field)


def _unknown_field(place: Place) -> Problem:
    allowed = sorted(place.section.model_fields) if place.section else []
    guess = nearest(place.field[-1], allowed)
    hint = f"Did you mean `{guess}`? " if guess else ""
    remedy = f"{hint}Allowed here: {', '.join(allowed)}."
    return Problem(Code.UNKNOWN_FIELD, Kind.SHAPE, "unknown field", remedy, place.field)


def _missing_field(place: Place) -> Problem:
    text = place.info.description if place.info else None
    remedy = _with_example(f"Add it. {text or 'It has no default.'}", place)
    return Problem(Code.MISSING_FIELD, Kind.SHAPE, "required field is missing", remedy, place.field)


def _tag(place: Place, kind: str, context: Mapping[str, Any]) -> Problem:
    """Returns the problem of a missing or wrong field that chooses a section.

    Such a field is `serving.container`.
    """
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
    guess = nearest(context["tag"], allowed)
    hint = f"Did you mean `{guess}`? " if guess else ""
    message = f"{_shown(context['tag'])} is not known here"
    return Problem(Code.UNKNOWN_CHOICE, Kind.VALUE, message, f"{hint}Allowed: {listed}.", field)


def _wrong_type(kind: str, value: Any) -> _Described:
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
    elif isinstance(value, (int, float)) and wanted == "a text":
        remedy = "Put the value in quotes."
    return Code.WRONG_TYPE, Kind.SHAPE, f"{_shown(value)} is not {wanted}", remedy


def _bound(word: str, key: str) -> _Describe:
    def write(value: Any, context: Mapping[str, Any]) -> _Described:
        limit = context[key]
        return (
            Code.OUT_OF_RANGE,
            Kind.VALUE,
            f"{_shown(value)} is out of range: {word} {limit}",
            f"Use a value that is {word} {limit}.",
        )

    return write


def _length(word: str, key: str) -> _Describe:
    def write(value: Any, context: Mapping[str, Any]) -> _Described:
        limit = context[key]
        return (
            Code.WRONG_LENGTH,
            Kind.VALUE,
            f"{_shown(value)} has length {len(value)}: {word} {limit}",
            f"Give {word} {limit}.",
        )

    return write


def _pattern(value: Any, context: Mapping[str, Any]) -> _Described:
    return (
        Code.WRONG_FORM,
        Kind.VALUE,
        f"{_shown(value)} does not have the form {context['pattern']}",
        "Write it in that form.",
    )


def _choice(value: Any, context: Mapping[str, Any]) -> _Described:
    expected = str(context["expected"])
    guess = nearest(value, [word.strip("'") for word in expected.replace(" or ", ", ").split(", ")])
    hint = f"Did you mean `{guess}`? " if guess else ""
    return (
        Code.UNKNOWN_CHOICE,
        Kind.VALUE,
        f"{_shown(value)} is not known here",
        f"{hint}Allowed: {expected}.",
    )


def _instance_type(value: Any, context: Mapping[str, Any]) -> _Described:
    guess = context["nearest"]
    hint = f"Did you mean `{guess}`? " if guess else ""
    return (
        Code.UNKNOWN_INSTANCE_TYPE,
        Kind.VALUE,
        f"{_shown(value)} is not a known hosting instance type",
        f"{hint}slipway/facts/instances.json lists the {context['known']} known ones.",
    )


def _finite(value: Any, _: Mapping[str, Any]) -> _Described:
    return (
        Code.OUT_OF_RANGE,
        Kind.VALUE,
        f"{_shown(value)} is not a finite number",
        "Write a finite number.",
    )


def _reserved(value: Any, _: Mapping[str, Any]) -> _Described:
    names = ", ".join([*RESERVED_NAMES, *(f"{prefix}*" for prefix in RESERVED_PREFIXES)])
    return (
        Code.RESERVED_NAME,
        Kind.VALUE,
        f"{_shown(value)} is reserved for Slipway's stacks",
        f"Reserved names: {names}.",
    )


def _key_of_another_region(value: Any, _: Mapping[str, Any]) -> _Described:
    return (
        Code.KEY_ELSEWHERE,
        Kind.VALUE,
        f"{_shown(value)} is in another region than the environment",
        "A key encrypts in its own region alone: name a key of the environment's region.",
    )


def _reserved_tag(value: Any, _: Mapping[str, Any]) -> _Described:
    prefixes = " or ".join(f"`{prefix}`" for prefix in RESERVED_TAG_PREFIXES)
    return (
        Code.REFUSED_TAG,
        Kind.VALUE,
        f"{_shown(value)} is a reserved key",
        f"Use a key without {prefixes} in front.",
    )


def _control_character(value: Any, context: Mapping[str, Any]) -> _Described:
    name = f"U+{ord(context['character']):04X}"
    return (
        Code.CONTROL_CHARACTER,
        Kind.VALUE,
        f"{_shown(value)} has the control character {name}, which no template can hold",
        "Remove it.",
    )


def _tag_characters(value: Any, context: Mapping[str, Any]) -> _Described:
    return (
        Code.REFUSED_TAG,
        Kind.VALUE,
        f"{_shown(value)} has the character {_shown(context['character'])}, which tags cannot have",
        f"Use letters, digits, spaces and {' '.join(TAG_PUNCTUATION)}",
    )


def _same_tag(_: Any, context: Mapping[str, Any]) -> _Described:
    return (
        Code.REFUSED_TAG,
        Kind.VALUE,
        f"{_shown(context['one'])} and {_shown(context['other'])} are one tag: IAM's keys are not "
        "case sensitive",
        "Keep one of them.",
    )


def _large_variable(_: Any, context: Mapping[str, Any]) -> _Described:
    return (
        Code.VARIABLES_TOO_LARGE,
        Kind.VALUE,
        f"the variable {context['name']} has {context['size']} bytes: at most "
        f"{LARGEST_VARIABLE_BYTES}",
        "Shorten it.",
    )


def _large_environment(_: Any, context: Mapping[str, Any]) -> _Described:
    return (
        Code.VARIABLES_TOO_LARGE,
        Kind.VALUE,
        f"the variables have {context['size']} bytes together, names included: at most "
        f"{LARGEST_ENVIRONMENT_BYTES}",
        "Put what is long into a file of the artifact.",
    )


def _outside(value: Any, _: Mapping[str, Any]) -> _Described:
    return (
        Code.PATH_OUTSIDE_PROJECT,
        Kind.VALUE,
        f"{_shown(value)} leads out of the project",
        "Write a path relative to the project's folder, without `..`.",
    )


def _s3_prefix(value: Any, _: Mapping[str, Any]) -> _Described:
    return (
        Code.NOT_AN_S3_PREFIX,
        Kind.VALUE,
        f"{_shown(value)} is not a prefix in S3",
        "Write `s3://BUCKET/PREFIX/`, with the final slash.",
    )


def _retention(value: Any, _: Mapping[str, Any]) -> _Described:
    near = min(LOG_RETENTION_DAYS, key=lambda days: abs(days - value))
    listed = ", ".join(map(str, LOG_RETENTION_DAYS))
    return (
        Code.LOG_RETENTION,
        Kind.VALUE,
        f"{_shown(value)} is not a retention period of CloudWatch Logs",
        f"The nearest is {near}. Allowed: {listed}.",
    )


_WRITERS: Mapping[str, _Describe] = {
    "greater_than_equal": _bound("at least", "ge"),
    "greater_than": _bound("more than", "gt"),
    "less_than_equal": _bound("at most", "le"),
    "less_than": _bound("less than", "lt"),
    "string_too_long": _length("at most", "max_length"),
    "string_too_short": _length("at least", "min_length"),
    "too_long": _length("at most", "max_length"),
    "too_short": _length("at least", "min_length"),
    "string_pattern_mismatch": _pattern,
    "literal_error": _choice,
    "unknown_instance_type": _instance_type,
    "finite_number": _finite,
    "key_of_another_region": _key_of_another_region,
    "reserved_name": _reserved,
    "reserved_tag": _reserved_tag,
    "control_character": _control_character,
    "tag_characters": _tag_characters,
    "same_tag": _same_tag,
    "variable_too_large": _large_variable,
    "environment_too_large": _large_environment,
    "project_path": _outside,
    "log_retention": _retention,
    "s3_prefix": _s3_prefix,
}


def _with_example(remedy: str, place: Place) -> str:
    if place.info is None or not place.info.examples:
        return remedy
    name = next(part for part in reversed(place.field) if isinstance(part, str))
    return f"{remedy} Example: `{name}: {json.dumps(place.info.examples[0])}`."


def _shown(value: Any) -> str:
    text = json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
