"""The entry point for DJL Serving, and text generation, for both engines' handlers.

It runs on Python 3.8, the oldest image's version. The file name starts with `slipway_`, because the
directory comes first on the import path of every library in the container.

Errors have the form of `containers.serving.errors`. Up to 0.27, DJL Serving gives a batch one
status for all its requests. A request that fails alone in a batch is therefore answered with status
200 and an object that has `error`, as in `{"error": {"code": "invalid_request", "message":
"..."}}`.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar

from slipway_requests import (
    MAX_SEED,
    GenerationRequest,
    InvalidRequestError,
    Sampling,
    parse_generation_request,
)

_logger = logging.getLogger(__name__)

_MOST_TOKENS: Final = 1_000_000

RequestT = TypeVar("RequestT")


class InvalidOptionsError(Exception):
    """serving.properties has options that the handler does not support; the message names all."""


class Input(Protocol):
    """The part of `djl_python.Input` that the handlers use; all of it exists from 0.21 to 0.27."""

    def is_empty(self) -> bool: ...
    def is_batch(self) -> bool: ...
    def get_batches(self) -> Sequence[Input]: ...
    def get_properties(self) -> Mapping[str, Any]: ...
    def get_as_bytes(self) -> bytes | bytearray | None: ...


class Output(Protocol):
    """The part of `djl_python.Output` that the handlers use; all of it exists from 0.21 to 0.27."""

    def add_property(self, key: str, val: str) -> object: ...
    def add(self, value: bytes, key: str, batch_index: int | None = None) -> object: ...


class Predictor(Protocol[RequestT]):
    """A loaded model that parses requests and answers them."""

    def parse(self, body: bytes) -> RequestT:
        """Returns the parsed request, or raises `InvalidRequestError`."""

    def group(self, request: RequestT) -> Hashable:
        """Returns a key that is equal for requests that may share a batch; None to run alone."""

    def predict(self, requests: Sequence[RequestT]) -> Sequence[object]:
        """Returns one answer per request, ready for JSON; all requests are of one group."""


@dataclass(frozen=True)
class _Answer:
    status: int
    reason: str
    body: bytes


class Handler:
    """The function that DJL Serving calls, with a predictor that the first call loads.

    An exception of `load` stops the server. `new_output` is `djl_python.Output`.
    """

    def __init__(
        self,
        load: Callable[[Mapping[str, Any]], Predictor[Any]],
        new_output: Callable[[int, str], Output],
    ) -> None:
        self._load = load
        self._new_output = new_output
        self._predictor: Predictor[Any] | None = None

    def handle(self, inputs: Input) -> Output | None:
        """Answers a call; returns None for the first, empty call, which warms the model up.

        A later call is empty if the server did not pass its body on, such as the body of a form.
        """
        if self._predictor is None:
            self._predictor = self._load(inputs.get_properties())
            if inputs.is_empty():
                return None
        try:
            if inputs.is_empty():
                failure = _error(400, "invalid_request", "Send a body of application/json.")
                return self._output([failure], is_batch=False)
            bodies = [bytes(item.get_as_bytes() or b"") for item in inputs.get_batches()]
            return self._output(_answers(self._predictor, bodies), is_batch=inputs.is_batch())
        # An exception that leaves this function would reach the client with its text.
        except Exception:
            _logger.exception("A call failed outside of the model.")
            failure = _error(500, "internal_error", "The server failed to answer; see its log.")
            return self._output([failure], is_batch=False)

    def _output(self, answers: Sequence[_Answer], *, is_batch: bool) -> Output:
        first = answers[0]
        # With a status of 300 or more, every request of a batch gets the whole content.
        if not is_batch or (first.status >= 300 and all(answer == first for answer in answers)):
            output = self._new_output(first.status, first.reason)
            output.add(first.body, key="data")
        else:
            output = self._new_output(200, "OK")
            for index, answer in enumerate(answers):
                output.add(answer.body, key="data", batch_index=index)
        output.add_property("Content-Type", "application/json")
        return output


def _answers(predictor: Predictor[Any], bodies: Sequence[bytes]) -> list[_Answer]:
    answers: dict[int, _Answer] = {}
    # Groups keep the order of arrival, because all processes of a tensor parallel model must
    # compute the same groups.
    groups: dict[Hashable, list[tuple[int, Any]]] = {}
    for index, body in enumerate(bodies):
        try:
            request = predictor.parse(body)
        except InvalidRequestError as error:
            answers[index] = _error(400, "invalid_request", str(error))
            continue
        group = predictor.group(request)
        key = ("alone", index) if group is None else ("group", group)
        groups.setdefault(key, []).append((index, request))
    for members in groups.values():
        computed = _computed(predictor, [request for _, request in members])
        for (index, _), answer in zip(members, computed):  # noqa: B905 - Python 3.8 has no `strict`
            answers[index] = answer
    return [answers[index] for index in range(len(bodies))]


def _computed(predictor: Predictor[Any], requests: Sequence[Any]) -> list[_Answer]:
    """Returns one answer per request: the model's answer, or the same failure for all requests."""
    try:
        outputs = predictor.predict(requests)
        if len(outputs) != len(requests):
            raise RuntimeError(f"{len(outputs)} answers to {len(requests)} requests")
        return [_Answer(200, "OK", _json(output)) for output in outputs]
    except Exception:
        _logger.exception("The model failed to answer %d request(s).", len(requests))
        failure = _error(500, "model_failure", "The model failed to compute an answer.")
        return [failure] * len(requests)


def _error(status: int, code: str, message: str) -> _Answer:
    return _Answer(status, code, _json({"error": {"code": code, "message": message}}))


def _json(document: object) -> bytes:
    return json.dumps(document, ensure_ascii=False, allow_nan=False).encode()


class Options:
    """Reads `option.` values of serving.properties, which arrive as strings without the prefix.

    Problems are kept until `finish`, so that one start shows all of them.
    """

    def __init__(self, properties: Mapping[str, Any]) -> None:
        self._properties = properties
        self._problems: list[str] = []
        # A rolling batch changes what the server sends and expects; streaming is not implemented.
        self.choice("rolling_batch", "disable", ("disable",))
        self.choice("enable_streaming", "false", ("false",))

    def text(self, name: str, default: str = "") -> str:
        return str(self._properties.get(name, default)).strip()

    def choice(self, name: str, default: str, choices: Sequence[str]) -> str:
        value = self.text(name, default)
        if value not in choices:
            self.problem(
                f"option.{name}={value} does not go with this model.py, which takes "
                f"{' or '.join(choices)}"
            )
        return value

    def flag(self, name: str) -> bool:
        return self.choice(name, "false", ("true", "false")) == "true"

    def whole_number(self, name: str, default: int) -> int:
        """Returns a number from 1 to a million."""
        value = self.text(name, str(default))
        if not (value.isdecimal() and 1 <= int(value) <= _MOST_TOKENS):
            self.problem(f"option.{name}={value} is not a whole number within 1 to {_MOST_TOKENS}")
            return default
        return int(value)

    def model(self) -> str:
        """Returns the Hub id or directory of the weights: `model_id`, or else the package's."""
        return self.text("model_id") or self.text("model_dir")

    def problem(self, message: str) -> None:
        self._problems.append(message)

    def finish(self) -> None:
        """Raises `InvalidOptionsError` if there was a problem."""
        if self._problems:
            raise InvalidOptionsError("serving.properties: " + "; ".join(self._problems))


@dataclass(frozen=True)
class Generation:
    """Settings of answers that are computed together; `sampling` None is greedy decoding."""

    max_new_tokens: int
    sampling: Sampling | None
    repetition_penalty: float


@dataclass(frozen=True)
class GenerationLimits:
    """Limits of a request, set by the options of the same names in serving.properties.

    `default_new_tokens` are generated if the request does not set a number. `max_inputs` is also
    the most prompts that are computed together.
    """

    max_new_tokens: int
    default_new_tokens: int
    max_inputs: int

    @classmethod
    def read(cls, options: Options) -> GenerationLimits:
        max_new_tokens = options.whole_number("max_new_tokens", 256)
        default = options.whole_number("default_new_tokens", min(20, max_new_tokens))
        if default > max_new_tokens:
            options.problem(
                f"option.default_new_tokens={default} exceeds "
                f"option.max_new_tokens={max_new_tokens}"
            )
        return cls(max_new_tokens, default, options.whole_number("max_inputs", 32))


class TextModel(Protocol):
    """An engine with a model loaded.

    `max_positions` counts the tokens of a prompt and its answer together; None for no limit.
    """

    max_positions: int | None
    max_top_k: int

    def count_tokens(self, text: str) -> int:
        """Returns how many tokens the model reads for `text`."""

    def generate(self, texts: Sequence[str], generation: Generation, seed: int) -> Sequence[str]:
        """Returns the new text of each prompt, of which there are at most `max_inputs`.

        `seed` is 0 to `MAX_SEED`, and used only if tokens are sampled.
        """


class TextGeneration:
    """The predictor of every model that generates text."""

    def __init__(self, model: TextModel, limits: GenerationLimits) -> None:
        self._model = model
        self._limits = limits
        self._draws = 0

    def parse(self, body: bytes) -> tuple[GenerationRequest, Generation]:
        request = parse_generation_request(
            body,
            max_new_tokens=self._limits.max_new_tokens,
            max_inputs=self._limits.max_inputs,
            max_top_k=self._model.max_top_k,
        )
        new_tokens = min(
            self._new_tokens(index, text, request.max_new_tokens)
            for index, text in enumerate(request.texts)
        )
        return request, Generation(new_tokens, request.sampling, request.repetition_penalty)

    def group(self, request: tuple[GenerationRequest, Generation]) -> Hashable:
        """Returns the settings, or None for a request with a seed, which runs alone.

        A seed must give the same answer whatever the other requests are.
        """
        sampling = request[0].sampling
        return None if sampling and sampling.seed is not None else request[1]

    def predict(
        self, requests: Sequence[tuple[GenerationRequest, Generation]]
    ) -> list[list[dict[str, str]]]:
        """Returns `[{"generated_text": ...}, ...]` for each request."""
        texts = [text for request, _ in requests for text in request.texts]
        generated = iter(self._generate(texts, requests[0][1]))
        return [
            [
                {"generated_text": (text if request.return_full_text else "") + next(generated)}
                for text in request.texts
            ]
            for request, _ in requests
        ]

    def _generate(self, texts: Sequence[str], generation: Generation) -> list[str]:
        sampling = generation.sampling
        seed, size = 0, self._limits.max_inputs
        if sampling and sampling.seed is not None:
            # One prompt at a time, so that the first answer is the same as for a single prompt, and
            # equal prompts get different answers.
            seed, size = sampling.seed, 1
        elif sampling:
            seed = self._any_seed(texts)
        generated: list[str] = []
        for start in range(0, len(texts), size):
            part = texts[start : start + size]
            answers = self._model.generate(part, generation, (seed + start) % (MAX_SEED + 1))
            if len(answers) != len(part):
                raise RuntimeError(f"the engine gave {len(answers)} texts for {len(part)} prompts")
            generated.extend(answers)
        return generated

    def _any_seed(self, texts: Sequence[str]) -> int:
        """Returns a seed that differs in every call, but not between the processes of a model.

        Every process of a tensor parallel model computes its own seed; with different seeds their
        answers would diverge.
        """
        self._draws += 1
        digest = hashlib.sha256(json.dumps([self._draws, *texts]).encode()).digest()
        return int.from_bytes(digest[:8], "big") & MAX_SEED

    def _new_tokens(self, index: int, text: str, asked: int | None) -> int:
        """Returns how many tokens to generate: the number asked for, or the default if it fits."""
        positions = self._model.max_positions
        count = self._model.count_tokens(text)
        if not count:
            raise InvalidRequestError(f"Input {index} holds no token that the model knows.")
        if positions is None:
            return asked or self._limits.default_new_tokens
        if count >= positions:
            raise InvalidRequestError(
                f"Input {index} has {count} tokens; the limit is {positions - 1}."
            )
        if asked is None:
            return min(self._limits.default_new_tokens, positions - count)
        if count + asked > positions:
            raise InvalidRequestError(
                f"Input {index} has {count} tokens and max_new_tokens is {asked}: together "
                f"they exceed the model's {positions} positions; at most "
                f"{positions - count} new tokens fit."
            )
        return asked
