"""The family's predictor: text in, generated text out."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from containers.serving.errors import InvalidRequestError
from containers.serving.logs import log_info, log_warning
from containers.serving.metrics import Metrics
from containers.serving.model_files import TOKENIZER_FILE
from containers.serving.predictor import ModelLoadError, StepResult
from containers.serving.settings import ServingSettings
from containers.tensorrt.answers import Answer, AnswerForm, Answers
from containers.tensorrt.beam_search import TokenIds
from containers.tensorrt.generation import Continuation, DecodingBatch, Prompt, generate
from containers.tensorrt.model_directory import ModelConfig, check_files, read_config
from containers.tensorrt.openai.chat_template import ChatTemplate, read_chat_template
from containers.tensorrt.openai.requests import NO_TEMPLATE, UNUSABLE_TEMPLATE
from containers.tensorrt.parameters import GenerationTask, RequestLimits
from containers.tensorrt.requests import BodyReader
from containers.tensorrt.runtimes.selection import open_session
from containers.tensorrt.settings import GenerationSettings
from containers.tensorrt.stepping import StepSession
from containers.tensorrt.stop_sequences import AnswerText
from containers.tensorrt.tokenization import PromptTokenizer


@dataclass(frozen=True)
class TextInput:
    """One prompt and the form of its answers; a streamed request has one input."""

    prompt: Prompt
    form: AnswerForm
    text_before: str = ""  # beginning of every answer, "" or the prompt itself
    stop_texts: tuple[str, ...] = ()
    is_streamed: bool = False


class TextGenerationPredictor:
    """Generates text with a step graph; a `containers.serving.predictor.StepwisePredictor`.

    The sequences of one request must fit `max_batch_size`, the rows of a forward pass. A request
    has at most `max_texts`, the length of the serving core's queue.
    """

    def __init__(
        self,
        settings: GenerationSettings,
        *,
        max_batch_size: int = ServingSettings.max_batch_size,
        max_texts: int = ServingSettings.max_queue_length,
        metrics: Metrics | None = None,
    ) -> None:
        self._settings = settings
        self._bodies = BodyReader(RequestLimits(settings, max_batch_size, max_texts))
        self._max_batch_size = max_batch_size
        metrics = metrics or Metrics()
        self._count_prompt_tokens = metrics.counter(
            "slipway_prompt_tokens", "Tokens of prompts that joined the batch."
        )
        self._count_generated_tokens = metrics.counter(
            "slipway_generated_tokens", "New tokens of finished answers."
        )
        self._max_input_tokens = 0
        self._config: ModelConfig
        self._tokenizer: PromptTokenizer
        # The reason takes the template's place where there is none.
        self._chat_template: ChatTemplate | str = NO_TEMPLATE
        self._session: StepSession[Any]
        self._batch: DecodingBatch
        # The inputs in the batch.
        self._keys: dict[Continuation, Hashable] = {}
        self._answers: dict[Hashable, _GrowingAnswer] = {}

    def load(self, model_dir: Path) -> None:
        """Checks the directory, opens the session and runs one step through it."""
        check_files(model_dir)
        self._config = read_config(model_dir)
        # A prompt leaves at least one position for a new token.
        longest = self._config.max_positions - 1
        self._max_input_tokens = self._settings.max_input_tokens or longest
        if self._max_input_tokens > longest:
            raise ModelLoadError(
                f"SLIPWAY_MAX_INPUT_TOKENS={self._max_input_tokens} exceeds {longest}: the model "
                f"has {self._config.max_positions} positions and one is for a new token"
            )
        self._tokenizer = PromptTokenizer.read(model_dir / TOKENIZER_FILE)
        if self._tokenizer.vocabulary_size > self._config.vocabulary_size:
            raise ModelLoadError(
                f"{TOKENIZER_FILE} has {self._tokenizer.vocabulary_size} tokens and the model "
                f"only {self._config.vocabulary_size}: they do not belong together"
            )
        self._chat_template = _chat_template(model_dir)
        self._session = open_session(
            model_dir, self._config, self._settings, max_batch_size=self._max_batch_size
        )
        self._batch = DecodingBatch(self._session, eos_token_ids=self._config.eos_token_ids)
        # Prefill and one decoding step, so that the first request pays for no set-up.
        generate(self._session, [Prompt((0,), max_new_tokens=2)], eos_token_ids=frozenset())
        log_info(
            "model_limits",
            max_positions=self._config.max_positions,
            max_input_tokens=self._max_input_tokens,
            max_new_tokens=self._settings.max_new_tokens,
            default_new_tokens=self._settings.default_new_tokens,
            has_chat_template=not isinstance(self._chat_template, str),
        )

    def parse(self, body: bytes) -> tuple[TextInput, ...]:
        """Parses a body, tokenizes it and checks it against the model's limits.

        Each sampled completion is an input with its own random stream, so that equal prompts in one
        request differ. The first completion of the first text is the same as in a request for a
        single completion. A beam search is one input with all its answers.
        """
        task = self._bodies.read(body, self._chat_template)
        sampling = task.sampling
        encoded = self._tokenizer.encode(
            task.texts,
            max_tokens=self._max_input_tokens,
            adds_special_tokens=task.adds_special_tokens,
        )
        inputs: list[TextInput] = []
        for index, (text, token_ids) in enumerate(zip(task.texts, encoded, strict=True)):
            prompt = Prompt(
                token_ids=token_ids,
                max_new_tokens=self._new_tokens(len(token_ids), task, index=index),
                sampling=sampling,
                beams=task.beams,
            )
            inputs += [
                TextInput(
                    replace(
                        prompt, sampling=sampling and replace(sampling, stream=(index, completion))
                    ),
                    form=task.form,
                    text_before=text if task.has_prompt else "",
                    stop_texts=task.stop_texts,
                    is_streamed=task.is_streamed,
                )
                for completion in range(task.sequences)
            ]
        return tuple(inputs)

    def parses_long(self, body: bytes) -> bool:
        """Returns whether the body may be a chat, whose template may take its time."""
        # JSON can also write the letters of a name as escapes.
        is_chat = b'"messages"' in body or b"\\u00" in body
        return is_chat and not isinstance(self._chat_template, str)

    def is_streamed(self, inputs: Sequence[TextInput]) -> bool:
        return inputs[0].is_streamed

    def rows(self, value: TextInput) -> int:
        return value.prompt.rows

    def join(self, inputs: Mapping[Hashable, TextInput]) -> StepResult[Answers]:
        decode = self._tokenizer.decode
        answers = {key: _GrowingAnswer(value, decode) for key, value in inputs.items()}
        prompts = [answer.prompt for answer in answers.values()]
        continuations = self._batch.join(prompts)
        self._count_prompt_tokens(sum(len(prompt.token_ids) for prompt in prompts))
        self._keys |= dict(zip(continuations, answers, strict=True))
        self._answers |= answers
        return self._result([each for each in continuations if each.is_finished])

    def step(self) -> StepResult[Answers]:
        return self._result(self._batch.step())

    def leave(self, keys: Sequence[Hashable]) -> None:
        leaving = [continuation for continuation, key in self._keys.items() if key in keys]
        self._batch.leave(leaving)
        for continuation in leaving:
            del self._answers[self._keys.pop(continuation)]

    def clear(self) -> None:
        self._batch.clear()
        self._keys.clear()
        self._answers.clear()

    def render(self, outputs: Sequence[Answers]) -> bytes:
        return outputs[0].form.body(outputs)

    def _result(self, finished: Sequence[Continuation]) -> StepResult[Answers]:
        outputs: dict[Hashable, Answers] = {}
        pieces: dict[Hashable, bytes] = {}
        for continuation in finished:
            key = self._keys.pop(continuation)
            answer = self._answers.pop(key)
            outputs[key] = answer.finish(continuation)
            self._count_generated_tokens(sum(map(len, continuation.results)))
            if answer.is_streamed:
                pieces[key] = answer.last_piece(outputs[key])
        for key, answer in self._answers.items():
            if answer.is_streamed and (piece := answer.piece()):
                pieces[key] = piece
        return StepResult(outputs, pieces)

    def _new_tokens(self, prompt_tokens: int, task: GenerationTask, *, index: int) -> int:
        """Returns how many tokens to generate: the number asked for, or the default if it fits."""
        positions, asked = self._config.max_positions, task.max_new_tokens
        if asked is None:
            return min(self._settings.default_new_tokens, positions - prompt_tokens)
        if prompt_tokens + asked > positions:
            raise InvalidRequestError(
                f"Input {index} has {prompt_tokens} tokens and {task.length_field} is {asked}: "
                f"together they exceed the model's {positions} positions; at most "
                f"{positions - prompt_tokens} new tokens fit."
            )
        return asked


class _GrowingAnswer:
    def __init__(self, text_input: TextInput, decode: Callable[[list[int]], str]) -> None:
        self._text_input = text_input
        self._decode = decode
        self.is_streamed = text_input.is_streamed
        # Text is decoded token by token only if stop texts or a stream need it.
        self._growing = (
            AnswerText(decode, text_input.stop_texts)
            if text_input.stop_texts or text_input.is_streamed
            else None
        )

    @property
    def prompt(self) -> Prompt:
        prompt = self._text_input.prompt
        return prompt if self._growing is None else replace(prompt, is_complete=self._growing.add)

    def finish(self, continuation: Continuation) -> Answers:
        before, prompt = self._text_input.text_before, self._text_input.prompt
        reason = continuation.finish_reason
        return Answers(
            answers=tuple(
                Answer(before + self._text(token_ids), len(token_ids), reason)
                for token_ids in continuation.results
            ),
            prompt_tokens=len(prompt.token_ids),
            form=self._text_input.form,
        )

    def piece(self) -> bytes | None:
        text = self._growing.take() if self._growing else ""
        return self._text_input.form.piece(text) if text else None

    def last_piece(self, answers: Answers) -> bytes:
        """Returns the events of the rest of the text and of its end; called after `finish`."""
        rest = self._growing.take_rest() if self._growing else ""
        return self._text_input.form.last_piece(rest, answers)

    def _text(self, token_ids: TokenIds) -> str:
        return self._growing.finish() if self._growing else self._decode(list(token_ids))


def _chat_template(model_dir: Path) -> ChatTemplate | str:
    """Returns the model's chat template, or the reason why chats are refused.

    A template that cannot be used does not end the program, because other requests need none.
    """
    try:
        return read_chat_template(model_dir) or NO_TEMPLATE
    except ModelLoadError as error:
        log_warning("chat_template_unusable", message=str(error))
        return UNUSABLE_TEMPLATE
