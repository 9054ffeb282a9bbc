"""What clients send: the request of Hugging Face's text-generation task, checked in full.

`{"inputs": TEXT or [TEXT, ...], "parameters": {...}, "stream": false}`. `return_full_text` is
false unless the request says otherwise, as in the task's specification
(https://huggingface.co/docs/inference-providers/tasks/text-generation). Stricter than there:
an unknown parameter, one that would have no effect, and two that cannot go together are errors.
`num_return_sequences`, `num_beams`, `length_penalty` and `early_stopping` are those of
`transformers.GenerationConfig`.

A request that asks for more than one sequence per text must fit one batch: its texts times the
greater of `num_beams` and `num_return_sequences` are at most `max_batch_size`.
"""

from dataclasses import dataclass
from typing import Any, Final, Literal

from containers.serving.errors import InvalidRequestError
from containers.serving.json_requests import json_type_name, parse_json_object
from containers.serving.settings import ServingSettings
from containers.serving.suggestions import nearest_name_hint
from containers.tensorrt.beam_search import Beams
from containers.tensorrt.sampling import Sampling

_FIELDS: Final = ("inputs", "parameters", "stream")
_SAMPLING_PARAMETERS: Final = ("temperature", "top_k", "top_p", "seed")
_BEAM_PARAMETERS: Final = ("length_penalty", "early_stopping")
_PARAMETERS: Final = (
    "max_new_tokens",
    "do_sample",
    *_SAMPLING_PARAMETERS,
    "stop",
    "num_return_sequences",
    "num_beams",
    *_BEAM_PARAMETERS,
    "return_full_text",
)
_MAX_SEED: Final = 2**63 - 1
_MAX_TEMPERATURE: Final = 100.0
# Below this, logits divided by it leave the range in which float64 still tells them apart.
_MIN_TEMPERATURE: Final = 0.001
# Every new token is looked at for each of them.
_MAX_STOP_TEXTS: Final = 16
_MAX_STOP_CHARACTERS: Final = 1000
# A length to the power of more leaves what float64 can hold.
_MAX_LENGTH_PENALTY: Final = 10.0
_PER_BATCH: Final = ", the endpoint's max_batch_size"


@dataclass(frozen=True)
class GenerationRequest:
    """A request whose form is right; token limits are checked where the tokenizer is.

    Attributes:
        texts: one or more prompts, none empty.
        max_new_tokens: None where the request does not say.
        sampling: None for greedy decoding and beam search.
        completions: how many times each text is continued on its own; above 1 with `sampling`.
        beams: None for greedy decoding and sampling.
        stop_texts: texts before which an answer is cut.
        return_full_text: whether the answer starts with the prompt.
        is_streamed: whether the answer is wanted piece by piece; it is then one answer to one text.
    """

    texts: tuple[str, ...]
    max_new_tokens: int | None
    sampling: Sampling | None
    completions: int
    beams: Beams | None
    stop_texts: tuple[str, ...]
    return_full_text: bool
    is_streamed: bool


def parse_generation_request(
    body: bytes, *, max_new_tokens: int, max_batch_size: int = ServingSettings.max_batch_size
) -> GenerationRequest:
    """Reads a body.

    Args:
        body: the JSON text.
        max_new_tokens: most that a request may ask for.
        max_batch_size: most sequences that are computed at a time.

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
    texts = _texts(document["inputs"])
    beams = _beams(parameters, max_batch_size)
    sampling = _sampling(parameters, beams)
    sequences = _sequences(parameters, beams, max_batch_size)
    if sequences > 1 and len(texts) * sequences > max_batch_size:
        raise InvalidRequestError(
            f"inputs holds {len(texts)} texts of {sequences} sequences each (num_beams or "
            f"num_return_sequences), {len(texts) * sequences} together; the endpoint "
            f"computes at most {max_batch_size} at a time (max_batch_size): send at most "
            f"{max_batch_size // sequences}, or ask for fewer sequences."
        )
    return GenerationRequest(
        texts=texts,
        max_new_tokens=_whole_number(parameters, "max_new_tokens", 1, max_new_tokens),
        sampling=sampling,
        completions=1 if beams else sequences,
        beams=beams,
        stop_texts=_stop_texts(parameters, beams),
        return_full_text=_boolean(parameters, "return_full_text"),
        is_streamed=_is_streamed(document, texts, sequences),
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
        _check_unicode(name, text)
    return tuple(texts)


def _check_unicode(name: str, text: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidRequestError(
            f"{name} holds half of a surrogate pair at character {error.start}."
        ) from error


def _sampling(parameters: dict[str, Any], beams: Beams | None) -> Sampling | None:
    if not _boolean(parameters, "do_sample"):
        given = [name for name in _SAMPLING_PARAMETERS if name in parameters]
        if given:
            remedy = (
                f"num_beams={beams.num_beams} searches without chance; leave one of them out."
                if beams
                else "set do_sample to true as well."
            )
            raise InvalidRequestError(f"{', '.join(given)} would have no effect: {remedy}")
        return None
    return Sampling(
        temperature=_number(parameters, "temperature", _MIN_TEMPERATURE, _MAX_TEMPERATURE, 1.0),
        top_k=_whole_number(parameters, "top_k", 1, 1_000_000),
        top_p=_number(parameters, "top_p", 0.0, 1.0, 1.0, minimum_is_allowed=False),
        seed=_whole_number(parameters, "seed", 0, _MAX_SEED),
    )


def _beams(parameters: dict[str, Any], max_batch_size: int) -> Beams | None:
    num_beams = _whole_number(parameters, "num_beams", 1, max_batch_size, _PER_BATCH) or 1
    if num_beams == 1:
        given = [name for name in _BEAM_PARAMETERS if name in parameters]
        if given:
            raise InvalidRequestError(
                f"{', '.join(given)} would have no effect: set num_beams above 1 as well."
            )
        return None
    if _boolean(parameters, "do_sample"):
        raise InvalidRequestError(
            f"do_sample=true and num_beams={num_beams} do not go together: leave one of them out."
        )
    answers = _whole_number(parameters, "num_return_sequences", 1, max_batch_size, _PER_BATCH) or 1
    if answers > num_beams:
        raise InvalidRequestError(
            f"num_return_sequences={answers} exceeds num_beams={num_beams}: a search has one "
            "answer per beam; raise num_beams or ask for fewer."
        )
    return Beams(
        num_beams=num_beams,
        num_return_sequences=answers,
        length_penalty=_number(
            parameters, "length_penalty", -_MAX_LENGTH_PENALTY, _MAX_LENGTH_PENALTY, 1.0
        ),
        early_stopping=_early_stopping(parameters),
    )


def _early_stopping(parameters: dict[str, Any]) -> bool | Literal["never"]:
    value = parameters.get("early_stopping", False)
    if isinstance(value, bool):
        return value
    if value == "never":
        return "never"
    shown = repr(value[:100]) if isinstance(value, str) else json_type_name(value)
    raise InvalidRequestError(f'early_stopping must be true, false or "never", not {shown}.')


def _sequences(parameters: dict[str, Any], beams: Beams | None, max_batch_size: int) -> int:
    """Returns the sequences that are computed for each text."""
    if beams is not None:
        return beams.num_beams
    answers = _whole_number(parameters, "num_return_sequences", 1, max_batch_size, _PER_BATCH) or 1
    if answers > 1 and not _boolean(parameters, "do_sample"):
        raise InvalidRequestError(
            f"num_return_sequences={answers} and greedy decoding do not go together, which has one "
            f"answer: set do_sample to true, or num_beams to {answers} or more."
        )
    return answers


def _is_streamed(document: dict[str, Any], texts: tuple[str, ...], sequences: int) -> bool:
    if not _boolean(document, "stream"):
        return False
    if len(texts) > 1:
        raise InvalidRequestError(
            f"stream=true and inputs of {len(texts)} texts do not go together: send one text, or "
            "set stream to false."
        )
    if sequences > 1:
        raise InvalidRequestError(
            f"stream=true and {sequences} sequences (num_beams or num_return_sequences) do not go "
            "together: leave them out, or set stream to false."
        )
    return True


def _stop_texts(parameters: dict[str, Any], beams: Beams | None) -> tuple[str, ...]:
    if "stop" not in parameters:
        return ()
    stop = parameters["stop"]
    if not isinstance(stop, list):
        raise InvalidRequestError(f"stop must be an array of strings, not {json_type_name(stop)}.")
    if not 1 <= len(stop) <= _MAX_STOP_TEXTS:
        raise InvalidRequestError(
            f"stop holds {len(stop)} texts: it must hold 1 to {_MAX_STOP_TEXTS}."
        )
    for index, text in enumerate(stop):
        name = f"stop[{index}]"
        if not isinstance(text, str):
            raise InvalidRequestError(f"{name} must be a string, not {json_type_name(text)}.")
        if not 1 <= len(text) <= _MAX_STOP_CHARACTERS:
            raise InvalidRequestError(
                f"{name} has {len(text)} characters: it must have 1 to {_MAX_STOP_CHARACTERS}."
            )
        _check_unicode(name, text)
    if beams is not None:
        raise InvalidRequestError(
            f"stop and num_beams={beams.num_beams} do not go together: leave one of them out."
        )
    return tuple(stop)


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


def _whole_number(
    parameters: dict[str, Any], name: str, minimum: int, maximum: int, reason: str = ""
) -> int | None:
    if name not in parameters:
        return None
    value = parameters[name]
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidRequestError(f"{name} must be a whole number, not {_shown(value)}.")
    if not minimum <= value <= maximum:
        raise InvalidRequestError(
            f"{name}={_shown(value)} is not within {minimum} to {maximum}{reason}."
        )
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
