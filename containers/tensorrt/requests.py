"""The requests that clients send: Hugging Face's text-generation task, checked in full.

`{"inputs": TEXT or [TEXT, ...], "parameters": {...}, "stream": false}`. `return_full_text` is false
unless the request says otherwise, as in the task's specification
(https://huggingface.co/docs/inference-providers/tasks/text-generation). Three things are errors
only here: an unknown parameter, a parameter that would have no effect, and two parameters that
cannot go together. `num_return_sequences`, `num_beams`, `length_penalty` and `early_stopping` have
their meaning in `transformers.GenerationConfig`.

A request that asks for more than one sequence per text must fit one batch. Its texts times the
greater of `num_beams` and `num_return_sequences` are at most `max_batch_size`.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from containers.serving.errors import InvalidRequestError
from containers.serving.json_requests import json_type_name, parse_json_object
from containers.serving.suggestions import nearest_name_hint
from containers.tensorrt.beam_search import Beams
from containers.tensorrt.parameters import Flag, Parameters, RequestLimits, check_unicode
from containers.tensorrt.sampling import Sampling

FIELDS: Final = ("inputs", "parameters", "stream")
STREAM: Final = Flag("stream", "Sends the one answer to one text piece by piece.")
_SAMPLING_PARAMETERS: Final = ("temperature", "top_k", "top_p", "seed")
_BEAM_PARAMETERS: Final = ("length_penalty", "early_stopping")


@dataclass(frozen=True)
class GenerationRequest:
    """A request whose fields are valid; limits in tokens are checked later, with the tokenizer.

    Attributes:
        texts: one or more prompts, none empty.
        max_new_tokens: None if the request does not set it.
        sampling: None for greedy decoding and beam search.
        completions: how many times each text is continued independently; above 1 only with
            `sampling`.
        beams: None for greedy decoding and sampling.
        stop_texts: texts before which an answer is cut.
        return_full_text: whether the answer starts with the prompt.
        is_streamed: whether the answer is sent piece by piece; the request then has one text and
            one answer.
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
    body: bytes,
    *,
    max_new_tokens: int,
    max_batch_size: int = RequestLimits.max_batch_size,
    max_texts: int = RequestLimits.max_texts,
) -> GenerationRequest:
    """Parses a body.

    Args:
        body: the JSON text.
        max_new_tokens: most new tokens that a request may ask for.
        max_batch_size: most sequences that are computed at a time.
        max_texts: most texts in a request.

    Raises:
        InvalidRequestError: the message names the field, its value and the allowed values.
    """
    limits = RequestLimits(max_new_tokens, max_batch_size, max_texts)
    document = parse_json_object(body)
    _refuse_unknown(document, FIELDS, "field")
    if "inputs" not in document:
        raise InvalidRequestError("The field inputs is missing: a string or an array of strings.")
    values = document.get("parameters", {})
    if not isinstance(values, dict):
        raise InvalidRequestError(f"parameters must be an object, not {json_type_name(values)}.")
    parameters = _parameters(limits)
    _refuse_unknown(values, tuple(parameters.by_name), "parameter")
    texts = _texts(document["inputs"], limits.max_texts)
    beams = _beams(values, parameters)
    sampling = _sampling(values, parameters, beams)
    sequences = _sequences(values, parameters, beams)
    if sequences > 1 and len(texts) * sequences > limits.max_batch_size:
        raise InvalidRequestError(
            f"inputs holds {len(texts)} texts of {sequences} sequences each (num_beams or "
            f"num_return_sequences), {len(texts) * sequences} together; the endpoint "
            f"computes at most {limits.max_batch_size} at a time (max_batch_size): send at most "
            f"{limits.max_batch_size // sequences}, or ask for fewer sequences."
        )
    return GenerationRequest(
        texts=texts,
        max_new_tokens=parameters.max_new_tokens.read(values),
        sampling=sampling,
        completions=1 if beams else sequences,
        beams=beams,
        stop_texts=_stop_texts(values, parameters, beams),
        return_full_text=parameters.return_full_text.read(values),
        is_streamed=_is_streamed(document, texts, sequences),
    )


# Cached: an endpoint has one set of limits, tests have several.
@lru_cache(maxsize=8)
def _parameters(limits: RequestLimits) -> Parameters:
    return Parameters(limits)


def _texts(inputs: object, max_texts: int) -> tuple[str, ...]:
    texts = inputs if isinstance(inputs, list) else [inputs]
    if not texts:
        raise InvalidRequestError("inputs is an empty array: it must hold at least one string.")
    if len(texts) > max_texts:
        raise InvalidRequestError(
            f"inputs holds {len(texts)} texts: it must hold 1 to {max_texts}, the endpoint's "
            "max_queue_length."
        )
    for index, text in enumerate(texts):
        name = f"inputs[{index}]" if isinstance(inputs, list) else "inputs"
        if not isinstance(text, str):
            allowed = "a string" if isinstance(inputs, list) else "a string or an array of strings"
            raise InvalidRequestError(f"{name} must be {allowed}, not {json_type_name(text)}.")
        if not text:
            raise InvalidRequestError(f"{name} is an empty string: it must hold some text.")
        check_unicode(name, text)
    return tuple(texts)


def _sampling(
    values: dict[str, Any], parameters: Parameters, beams: Beams | None
) -> Sampling | None:
    if not parameters.do_sample.read(values):
        given = [name for name in _SAMPLING_PARAMETERS if name in values]
        if given:
            remedy = (
                f"num_beams={beams.num_beams} searches without chance; leave one of them out."
                if beams
                else "set do_sample to true as well."
            )
            raise InvalidRequestError(f"{', '.join(given)} would have no effect: {remedy}")
        return None
    return Sampling(
        temperature=parameters.temperature.read(values),
        top_k=parameters.top_k.read(values),
        top_p=parameters.top_p.read(values),
        seed=parameters.seed.read(values),
    )


def _beams(values: dict[str, Any], parameters: Parameters) -> Beams | None:
    num_beams = parameters.num_beams.read(values) or 1
    if num_beams == 1:
        given = [name for name in _BEAM_PARAMETERS if name in values]
        if given:
            raise InvalidRequestError(
                f"{', '.join(given)} would have no effect: set num_beams above 1 as well."
            )
        return None
    if parameters.do_sample.read(values):
        raise InvalidRequestError(
            f"do_sample=true and num_beams={num_beams} do not go together: leave one of them out."
        )
    answers = parameters.num_return_sequences.read(values) or 1
    if answers > num_beams:
        raise InvalidRequestError(
            f"num_return_sequences={answers} exceeds num_beams={num_beams}: a search has one "
            "answer per beam; raise num_beams or ask for fewer."
        )
    return Beams(
        num_beams=num_beams,
        num_return_sequences=answers,
        length_penalty=parameters.length_penalty.read(values),
        early_stopping=parameters.early_stopping.read(values),
    )


def _sequences(values: dict[str, Any], parameters: Parameters, beams: Beams | None) -> int:
    """Returns the number of sequences that are computed for each text."""
    if beams is not None:
        return beams.num_beams
    answers = parameters.num_return_sequences.read(values) or 1
    if answers > 1 and not parameters.do_sample.read(values):
        raise InvalidRequestError(
            f"num_return_sequences={answers} and greedy decoding do not go together, which has one "
            f"answer: set do_sample to true, or num_beams to {answers} or more."
        )
    return answers


def _is_streamed(document: dict[str, Any], texts: tuple[str, ...], sequences: int) -> bool:
    if not STREAM.read(document):
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


def _stop_texts(
    values: dict[str, Any], parameters: Parameters, beams: Beams | None
) -> tuple[str, ...]:
    stop = parameters.stop.read(values)
    if stop and beams is not None:
        raise InvalidRequestError(
            f"stop and num_beams={beams.num_beams} do not go together: leave one of them out."
        )
    return stop


def _refuse_unknown(document: dict[str, Any], known: tuple[str, ...], kind: str) -> None:
    for name in document:
        if name not in known:
            hint = nearest_name_hint(name, known)
            raise InvalidRequestError(
                f"Unknown {kind} {name[:100]!r}{hint}; allowed: {', '.join(known)}."
            )
