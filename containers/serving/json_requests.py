"""Strict parsing of a JSON request body.

Python's parser accepts duplicate keys, NaN and lone surrogates. Each would surface later as a
silently ignored parameter or as a crash inside a tokenizer.
"""

import json
from typing import Any, NoReturn

from containers.serving.errors import InvalidRequestError


def parse_json_object(body: bytes) -> dict[str, Any]:
    """Returns the JSON object in a body.

    Raises `InvalidRequestError` if the body is not UTF-8, not JSON, not an object, or repeats a
    key.
    """
    try:
        document = json.loads(
            body.decode("utf-8"),
            object_pairs_hook=_object_without_duplicates,
            parse_constant=_refuse_constant,
        )
    except UnicodeDecodeError as error:
        raise InvalidRequestError(
            f"The body is not UTF-8: the byte at offset {error.start} is invalid."
        ) from error
    except json.JSONDecodeError as error:
        raise InvalidRequestError(
            f"The body is not valid JSON: {error.msg} at line {error.lineno} column {error.colno}."
        ) from error
    except RecursionError as error:
        raise InvalidRequestError("The body's JSON is nested too deeply.") from error
    except ValueError as error:  # an integer with more digits than Python's limit
        raise InvalidRequestError("The body holds a number with too many digits.") from error
    if not isinstance(document, dict):
        raise InvalidRequestError(
            f"The body must be a JSON object, not {json_type_name(document)}."
        )
    return document


def json_type_name(value: object) -> str:
    """Returns what JSON calls the type of `value`, with its article."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case list():
            return "an array"
        case _:
            return "an object"


def _object_without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise InvalidRequestError(f"The body's JSON repeats the key {json.dumps(key)}.")
        result[key] = value
    return result


def _refuse_constant(name: str) -> NoReturn:
    raise InvalidRequestError(f"The body is not valid JSON: {name} is not a JSON value.")
