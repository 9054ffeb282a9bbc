"""The family's predictor: text in, generated text out."""

import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tokenizers import Tokenizer

from containers.serving.errors import InvalidRequestError
from containers.serving.logs import log_event
from containers.serving.predictor import ModelLoadError
from containers.serving.settings import ServingSettings
from containers.tensorrt.beam_search import TokenIds
from containers.tensorrt.generation import Prompt, StepSession, generate
from containers.tensorrt.model_directory import (
    TOKENIZER_FILE,
    ModelConfig,
    check_files,
    read_config,
)
from containers.tensorrt.requests import parse_generation_request
from containers.tensorrt.runtimes.selection import open_session
from containers.tensorrt.settings import GenerationSettings
from containers.tensorrt.stop_sequences import StopWatch

_logger = logging.getLogger(__name__)

OpenSession = Callable[[Path, ModelConfig, GenerationSettings], StepSession]


@dataclass(frozen=True)
class TextInput:
    """One prompt and the form of its answers.

    Attributes:
        prompt: the prompt in tokens, and how it is continued.
        text_before: what an answer starts with, "" or the prompt itself.
        stop_texts: texts before which the answer is cut.
    """

    prompt: Prompt
    text_before: str
    stop_texts: tuple[str, ...] = ()


class TextGenerationPredictor:
    """Generates text with a step graph; a `containers.serving.predictor.Predictor`.

    Args:
        settings: limits of a request.
        max_batch_size: most rows of one forward pass, which the sequences of one request must
            fit; the serving core's setting, which also bounds the inputs it hands to `predict`.
        open_session: returns the runtime's session for a checked model directory.
    """

    def __init__(
        self,
        settings: GenerationSettings,
        *,
        max_batch_size: int = ServingSettings.max_batch_size,
        open_session: OpenSession = open_session,
    ) -> None:
        self._settings = settings
        self._max_batch_size = max_batch_size
        self._open_session = open_session
        self._max_input_tokens = 0
        self._config: ModelConfig
        self._tokenizer: Tokenizer
        self._session: StepSession

    def load(self, model_dir: Path) -> None:
        """Checks the directory, opens the session and runs one step through it.

        Raises:
            ModelLoadError: the message holds every problem that was found.
        """
        check_files(model_dir)
        self._config = read_config(model_dir)
        # One position is left for a new token.
        longest = self._config.max_positions - 1
        self._max_input_tokens = self._settings.max_input_tokens or longest
        if self._max_input_tokens > longest:
            raise ModelLoadError(
                f"SLIPWAY_MAX_INPUT_TOKENS={self._max_input_tokens} exceeds {longest}: the model "
                f"has {self._config.max_positions} positions and one is for a new token"
            )
        self._tokenizer = _read_tokenizer(model_dir / TOKENIZER_FILE)
        if self._tokenizer.get_vocab_size() > self._config.vocabulary_size:
            raise ModelLoadError(
                f"{TOKENIZER_FILE} has {self._tokenizer.get_vocab_size()} tokens and the model "
                f"only {self._config.vocabulary_size}: they do not belong together"
            )
        self._session = self._open_session(model_dir, self._config, self._settings)
        self._warm_up()
        log_event(
            _logger,
            logging.INFO,
            "model_limits",
            max_positions=self._config.max_positions,
            max_input_tokens=self._max_input_tokens,
            max_new_tokens=self._settings.max_new_tokens,
            default_new_tokens=self._settings.default_new_tokens,
        )

    def parse(self, body: bytes) -> tuple[TextInput, ...]:
        """Reads a body, tokenizes it and holds it to the model's limits.

        Each sampled completion is an input of its own with a random stream of its own, so that
        equal prompts in one request differ; the first completion of the first text is that of a
        request for one completion of it. A beam search is one input with all its answers.

        Raises:
            InvalidRequestError: the body is not a valid request.
        """
        request = parse_generation_request(
            body,
            max_new_tokens=self._settings.max_new_tokens,
            max_batch_size=self._max_batch_size,
        )
        encodings = self._tokenizer.encode_batch(list(request.texts))
        inputs: list[TextInput] = []
        for index, (text, encoding) in enumerate(zip(request.texts, encodings, strict=True)):
            prompt = Prompt(
                token_ids=tuple(encoding.ids),
                max_new_tokens=self._new_tokens(
                    len(encoding.ids), request.max_new_tokens, index=index
                ),
                sampling=request.sampling,
                beams=request.beams,
            )
            text_before = text if request.return_full_text else ""
            for completion in range(request.completions):
                sampling = request.sampling and replace(
                    request.sampling, stream=(index, completion)
                )
                inputs.append(
                    TextInput(replace(prompt, sampling=sampling), text_before, request.stop_texts)
                )
        return tuple(inputs)

    def predict(self, batch: Sequence[TextInput]) -> list[list[str]]:
        """Returns the texts generated for each input, in order; one text but for beam searches.

        What does not fit one forward pass, since a beam search takes a row per beam, is computed
        in several generations, one after the other.
        """
        answers: list[list[str]] = [[] for _ in batch]
        for places in self._generations(batch):
            for place, texts in zip(
                places, self._answer([batch[place] for place in places]), strict=True
            ):
                answers[place] = texts
        return answers

    def render(self, outputs: Sequence[Sequence[str]]) -> bytes:
        """Returns `[{"generated_text": ...}, ...]`: all answers to the first text, then the next's.

        The array is flat, so that it has the request's texts times its `num_return_sequences`
        entries.
        """
        return json.dumps(
            [{"generated_text": text} for texts in outputs for text in texts], ensure_ascii=False
        ).encode()

    def _generations(self, batch: Sequence[TextInput]) -> list[list[int]]:
        """Returns the places in `batch` that are computed together, each generation's in order.

        Every input goes to the first generation that has room for all its rows. As many rows as
        the serving core handed over inputs always fit, so inputs of one row are never parted.
        """
        most_rows = max(self._max_batch_size, len(batch))
        generations: list[list[int]] = []
        rooms: list[int] = []
        for place, text_input in enumerate(batch):
            rows = text_input.prompt.rows
            first = next((i for i, room in enumerate(rooms) if room >= rows), len(rooms))
            if first == len(rooms):
                generations.append([])
                rooms.append(most_rows)
            generations[first].append(place)
            rooms[first] -= rows
        return generations

    def _answer(self, batch: Sequence[TextInput]) -> list[list[str]]:
        """Generates for inputs that fit one forward pass."""
        watches = [
            StopWatch(self._tokenizer.decode, text_input.stop_texts)
            if text_input.stop_texts
            else None
            for text_input in batch
        ]
        generated = generate(
            self._session,
            [
                replace(text_input.prompt, is_complete=watch.add) if watch else text_input.prompt
                for text_input, watch in zip(batch, watches, strict=True)
            ],
            eos_token_ids=self._config.eos_token_ids,
        )
        return [
            [text_input.text_before + self._text(token_ids, watch) for token_ids in sequences]
            for text_input, watch, sequences in zip(batch, watches, generated, strict=True)
        ]

    def _text(self, token_ids: TokenIds, watch: StopWatch | None) -> str:
        text: str = watch.finish() if watch else self._tokenizer.decode(list(token_ids))
        return text

    def _new_tokens(self, prompt_tokens: int, asked: int | None, *, index: int) -> int:
        """Returns how many tokens to generate: what was asked, or the default where it fits."""
        if not prompt_tokens:
            raise InvalidRequestError(f"Input {index} holds no token that the model knows.")
        if prompt_tokens > self._max_input_tokens:
            raise InvalidRequestError(
                f"Input {index} has {prompt_tokens} tokens; the limit is {self._max_input_tokens}."
            )
        positions = self._config.max_positions
        if asked is None:
            return min(self._settings.default_new_tokens, positions - prompt_tokens)
        if prompt_tokens + asked > positions:
            raise InvalidRequestError(
                f"Input {index} has {prompt_tokens} tokens and max_new_tokens is {asked}: together "
                f"they exceed the model's {positions} positions; at most "
                f"{positions - prompt_tokens} new tokens fit."
            )
        return asked

    def _warm_up(self) -> None:
        """Runs prefill and one decoding step, so that the first request pays for no set-up."""
        generate(self._session, [Prompt((0,), max_new_tokens=2)], eos_token_ids=frozenset())


def _read_tokenizer(path: Path) -> Tokenizer:
    try:
        tokenizer = Tokenizer.from_file(str(path))
    # The bindings raise Exception itself.
    except Exception as error:
        raise ModelLoadError(f"{path} is not a tokenizer: {error}") from error
    # A file may carry both; prompts are measured whole and padded by the decode loop.
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer
