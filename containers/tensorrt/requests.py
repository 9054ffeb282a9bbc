"""What clients send: the request of Hugging Face's text-generation task, checked in full.

`{"inputs": TEXT or [TEXT, ...], "parameters": {...}}`. `return_full_text` is false unless the
request says otherwise, as in the task's specification
(https://huggingface.co/docs/inference-providers/tasks/text-generation). Stricter than there:
an unknown parameter, and one that would have no effect, are errors.
"""

from dataclasses import dataclass
from typing import Any, Final

from containers.serving.errors import InvalidRequestError
from containers.serving.json_requests import json_type_name, parse_json_object
from containers.serving.suggestions import nearest_name_hint
from containers.tensorrt.generation import Sampling

_FIELDS: Final = ("inputs", "parameters")
_SAMPLING_PARAMETERS: Final = ("temperature", "top_k", "top_p", "seed")
_PARAMETERS: Final = ("max_new_tokens", "do_sample", *_SAMPLING_PARAMETERS, "return_full_text")
_MAX_SEED: Final = 2**63 - 1
_MAX_TEMPERATURE: Final = 100.0
# Below this, logits divided by it leave the range in which float64 still tells them apart.
_MIN_TEMPERATURE: Final = 0.001


@dataclass(frozen=True)
class GenerationRequest:
    """A request whose form is right; token limits are checked where the tokenizer is.

    Attributes:
        texts: one or more prompts, none empty.
        max_new_tokens: None where the request does not say.
        sampling: None for greedy decoding.
        return_full_text: whether the answer starts with the prompt.
    """

    texts: tuple[str, ...]
    max_new_tokens: int | None
    sampling: Sampling | None
    return_full_text: bool


def parse_generation_request(body: bytes, *, max_new_tokens: int) -> GenerationRequest:
    """Reads a body.

    Args:
        body: the JSON text.
        max_new_tokens: most that a request may ask for.

    Raises:
        InvalidRequestError: names the field, what it held and what is allowed.
    """
    document = parse_json_object(body)
    _refuse_unknown(document, _FIELDS, "field")
    if "inputs" not in document:
        raise InvalidRequestError("The field inputs is missing: a string or an array of strings.")
    parameters = document.get("parameters", {})
    if not isinstance(parameters, dict):
        raise InvalidRequestError(
            f"parameters must be an object, not {json_type_name(parameters)}."
        )
    _refuse_unknown(parameters, _PARAMETERS, "parameter")
    return GenerationRequest(
        texts=_texts(document["inputs"]),
        max_new_tokens=_whole_number(parameters, "max_new_tokens", 1, max_new_tokens),
        sampling=_sampling(parameters),
        return_full_text=_boolean(parameters, "return_full_text"),
    )


def _texts(inputs: object) -> tuple[str, ...]:
    texts = inputs if isinstance(inputs, list) else [inputs]
    if not texts:
        raise InvalidRequestError("inputs is an empty array: it must hold at least one string.")
    for index, text in enumerate(texts):
        name = f"inputs[{index}]" if isinstance(inputs, list) else "inputs"
        if not isinstance(text, str):
            allowed = "a string" if isinstance(inputs, list) else "a string or an array of strings"
            raise InvalidRequestError(f"{name} must be {allowed}, not {json_type_name(text)}.")
        if not text:
            raise InvalidRequestError(f"{name} is an empty string: it must hold some text.")
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as error:
            raise InvalidRequestError(
                f"{name} holds half of a surrogate pair at character {error.start}."
            ) from error
    return tuple(texts)


def _sampling(parameters: dict[str, Any]) -> Sampling | None:
    if not _boolean(parameters, "do_sample"):
        given = [name for name in _SAMPLING_PARAMETERS if name in parameters]
        if given:
            raise InvalidRequestError(
                f"{', '.join(given)} would have no effect: set do_sample to true as well."
            )
        return None
    return Sampling(
        temperature=_number(parameters, "temperature", _MIN_TEMPERATURE, _MAX_TEMPERATURE, 1.0),
        top_k=_whole_number(parameters, "top_k", 1, 1_000_000),
        top_p=_number(parameters, "top_p", 0.0, 1.0, 1.0, minimum_is_allowed=False),
        seed=_whole_number(parameters, "seed", 0, _MAX_SEED),
    )


def _refuse_unknown(document: dict[str, Any], known: tuple[str, ...], kind: str) -> None:
    for name in document:
        if name not in known:
            hint = nearest_name_hint(name, known)
            raise InvalidRequestError(
                f"Unknown {kind} {name[:100]!r}{hint}; allowed: {', '.join(known)}."
            )


def _boolean(parameters: dict[str, Any], name: str) -> bool:
    value = parameters.get(name, False)
    if not isinstance(value, bool):
        raise InvalidRequestError(f"{name} must be true or false, not {json_type_name(value)}.")
    return value


def _whole_number(parameters: dict[str, Any], name: str, minimum: int, maximum: int) -> int | None:
    if name not in parameters:
        return None
    value = parameters[name]
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidRequestError(f"{name} must be a whole number, not {_shown(value)}.")
    if not minimum <= value <= maximum:
        raise InvalidRequestError(f"{name}={_shown(value)} is not within {minimum} to {maximum}.")
    return value


def _number(
    parameters: dict[str, Any],
    name: str,
    minimum: float,
    maximum: float,
    default: float,
    *,
    minimum_is_allowed: bool = True,
) -> float:
    value = parameters.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidRequestError(f"{name} must be a number, not {_shown(value)}.")
    if not minimum <= value <= maximum or (value == minimum and not minimum_is_allowed):
        above = f"{minimum:g}" if minimum_is_allowed else f"above {minimum:g}"
        raise InvalidRequestError(f"{name}={_shown(value)} is not within {above} to {maximum:g}.")
    return float(value)


def _shown(value: object) -> str:
    """Returns a number as it is, where it is short enough to read, and else the type's name."""
    if isinstance(value, float):
        return f"{value:g}"
    # Not through float: JSON's whole numbers may be larger than any.
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**20:
        return str(value)
    return json_type_name(value)
