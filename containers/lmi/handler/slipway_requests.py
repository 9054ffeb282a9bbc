"""The requests to the handlers of containers/lmi, checked in full.

Requests and messages are as in `containers.tensorrt.requests`: fields with the same meaning have
the same checks, and a test compares the two. Differences: `repetition_penalty`, a higher minimum of
`temperature`, and limits on the number of prompts and on `top_k`. It runs on Python 3.8, the oldest
image's version.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NoReturn

_FIELDS: Final = ("inputs", "parameters")
_SAMPLING_PARAMETERS: Final = ("temperature", "top_k", "top_p", "seed")
_PARAMETERS: Final = (
    "max_new_tokens",
    "do_sample",
    *_SAMPLING_PARAMETERS,
    "repetition_penalty",
    "return_full_text",
)
MAX_SEED: Final = 2**63 - 1
_MAX_TEMPERATURE: Final = 100.0
# Higher than in the TensorRT container: logits are fp16 here, and dividing them by less may exceed
# the largest fp16 number, 65504.
_MIN_TEMPERATURE: Final = 0.01
_MAX_REPETITION_PENALTY: Final = 10.0


class InvalidRequestError(Exception):
    """The body is not a valid request; the message is written for the client."""


@dataclass(frozen=True)
class Sampling:
    """Settings of sampling a token from the model's distribution; `top_k` None keeps all tokens."""

    temperature: float
    top_k: int | None
    top_p: float
    seed: int | None


@dataclass(frozen=True)
class GenerationRequest:
    """A request whose fields are valid; limits in tokens are checked later, with the tokenizer.

    None for `sampling` is greedy decoding. A `repetition_penalty` divides the scores of tokens that
    the text already has; 1 has no effect.
    """

    texts: tuple[str, ...]
    max_new_tokens: int | None
    sampling: Sampling | None
    repetition_penalty: float
    return_full_text: bool


def parse_generation_request(
    body: bytes, *, max_new_tokens: int, max_inputs: int, max_top_k: int
) -> GenerationRequest:
    """Parses a body; `InvalidRequestError` names the field, its value and the allowed ones."""
    texts, parameters = parse_body(body, _PARAMETERS, max_inputs=max_inputs)
    return GenerationRequest(
        texts=texts,
        max_new_tokens=whole_number(parameters, "max_new_tokens", 1, max_new_tokens),
        sampling=_sampling(parameters, max_top_k),
        repetition_penalty=_number(
            parameters,
            "repetition_penalty",
            0.0,
            _MAX_REPETITION_PENALTY,
            1.0,
            minimum_is_allowed=False,
        ),
        return_full_text=_boolean(parameters, "return_full_text"),
    )


def parse_body(
    body: bytes, known: Sequence[str], *, max_inputs: int
) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Returns the texts and the parameters of a body; only the names of parameters are checked."""
    document = _json_object(body)
    _refuse_unknown(document, _FIELDS, "field")
    if "inputs" not in document:
        raise InvalidRequestError("The field inputs is missing: a string or an array of strings.")
    parameters = document.get("parameters", {})
    if not isinstance(parameters, dict):
        raise InvalidRequestError(f"parameters must be an object, not {_type_name(parameters)}.")
    _refuse_unknown(parameters, known, "parameter")
    return _texts(document["inputs"], max_inputs), parameters


def _texts(inputs: object, max_inputs: int) -> tuple[str, ...]:
    texts = inputs if isinstance(inputs, list) else [inputs]
    if not texts:
        raise InvalidRequestError("inputs is an empty array: it must hold at least one string.")
    if len(texts) > max_inputs:
        raise InvalidRequestError(
            f"The request holds {len(texts)} inputs; the limit is {max_inputs}."
        )
    for index, text in enumerate(texts):
        name = f"inputs[{index}]" if isinstance(inputs, list) else "inputs"
        if not isinstance(text, str):
            allowed = "a string" if isinstance(inputs, list) else "a string or an array of strings"
            raise InvalidRequestError(f"{name} must be {allowed}, not {_type_name(text)}.")
        if not text:
            raise InvalidRequestError(f"{name} is an empty string: it must hold some text.")
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as error:
            raise InvalidRequestError(
                f"{name} holds half of a surrogate pair at character {error.start}."
            ) from error
    return tuple(texts)


def _sampling(parameters: Mapping[str, Any], max_top_k: int) -> Sampling | None:
    if not _boolean(parameters, "do_sample"):
        given = [name for name in _SAMPLING_PARAMETERS if name in parameters]
        if given:
            raise InvalidRequestError(
                f"{', '.join(given)} would have no effect: set do_sample to true as well."
            )
        return None
    return Sampling(
        temperature=_number(parameters, "temperature", _MIN_TEMPERATURE, _MAX_TEMPERATURE, 1.0),
        top_k=whole_number(parameters, "top_k", 1, max_top_k),
        top_p=_number(parameters, "top_p", 0.0, 1.0, 1.0, minimum_is_allowed=False),
        seed=whole_number(parameters, "seed", 0, MAX_SEED),
    )


def _refuse_unknown(document: Mapping[str, Any], known: Sequence[str], kind: str) -> None:
    for name in document:
        if name not in known:
            matches = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.6)
            hint = f" (did you mean {matches[0]}?)" if matches else ""
            raise InvalidRequestError(
                f"Unknown {kind} {name[:100]!r}{hint}; "
                + (f"allowed: {', '.join(known)}." if known else "there are none.")
            )


def _boolean(parameters: Mapping[str, Any], name: str) -> bool:
    value = parameters.get(name, False)
    if not isinstance(value, bool):
        raise InvalidRequestError(f"{name} must be true or false, not {_type_name(value)}.")
    return value


def whole_number(
    parameters: Mapping[str, Any], name: str, minimum: int, maximum: int
) -> int | None:
    """Returns a parameter, or None if the request does not set it."""
    if name not in parameters:
        return None
    value = parameters[name]
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidRequestError(f"{name} must be a whole number, not {_shown(value)}.")
    if not minimum <= value <= maximum:
        raise InvalidRequestError(f"{name}={_shown(value)} is not within {minimum} to {maximum}.")
    return value


def _number(
    parameters: Mapping[str, Any],
    name: str,
    minimum: float,
    maximum: float,
    default: float,
    *,
    minimum_is_allowed: bool = True,
) -> float:
    value = parameters.get(name, default)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidRequestError(f"{name} must be a number, not {_shown(value)}.")
    if not minimum <= value <= maximum or (value == minimum and not minimum_is_allowed):
        above = f"{minimum:g}" if minimum_is_allowed else f"above {minimum:g}"
        raise InvalidRequestError(f"{name}={_shown(value)} is not within {above} to {maximum:g}.")
    return float(value)


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**20:
        return str(value)
    return _type_name(value)


def _json_object(body: bytes) -> dict[str, Any]:
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
    except ValueError as error:  # an integer beyond the limit on digits, if Python has one
        raise InvalidRequestError("The body holds a number with too many digits.") from error
    if not isinstance(document, dict):
        raise InvalidRequestError(f"The body must be a JSON object, not {_type_name(document)}.")
    return document


def _object_without_duplicates(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise InvalidRequestError(f"The body's JSON repeats the key {json.dumps(key)}.")
        result[key] = value
    return result


def _refuse_constant(name: str) -> NoReturn:
    raise InvalidRequestError(f"The body is not valid JSON: {name} is not a JSON value.")


def _type_name(value: object) -> str:
    if value is None:
        return "null"
    for kind, name in (
        (bool, "a boolean"),
        ((int, float), "a number"),
        (str, "a string"),
        (list, "an array"),
    ):
        if isinstance(value, kind):
            return name
    return "an object"
