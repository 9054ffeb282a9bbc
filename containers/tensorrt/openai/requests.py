"""Requests in the forms of OpenAI's API, checked in full.

They differ from Hugging Face's in one default: without `temperature` an answer is drawn. With a
temperature of 0 it is greedy, whatever `top_p`, `top_k` and `seed` say.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, NamedTuple

from containers.serving.errors import InvalidRequestError
from containers.serving.fields import Flag, Text
from containers.serving.objects import Inputs, Object, OneOrMany
from containers.serving.problems import Problems
from containers.tensorrt.openai.answers import ChatForm, CompletionForm
from containers.tensorrt.openai.chat_template import ChatTemplate
from containers.tensorrt.openai.fields import (
    NOT_SUPPORTED,
    Choices,
    MaxTokens,
    Message,
    Messages,
    ModelName,
    NoBias,
    NoPenalty,
    Options,
    Seed,
    Stop,
    Stream,
    Temperature,
    TopK,
    TopP,
    User,
    refused,
)
from containers.tensorrt.parameters import GenerationTask, RequestLimits, max_texts
from containers.tensorrt.sampling import Sampling

NO_TEMPLATE: Final = (
    "The model has no chat template, so the endpoint takes no messages: send prompt or inputs. A "
    "model gets a template from chat_template.jinja, or from chat_template in "
    "tokenizer_config.json, when it is published."
)

UNUSABLE_TEMPLATE: Final = (
    "The model's chat template cannot be used, and the container's log says why: send prompt or "
    "inputs."
)


class Completion(NamedTuple):
    prompt: Annotated[
        Inputs[str],
        OneOrMany(Text(), max_texts, is_required=True),
        "One text or several.",
    ]
    model: ModelName
    max_tokens: MaxTokens
    temperature: Temperature
    top_p: TopP
    top_k: TopK
    n: Choices
    seed: Seed
    stop: Stop
    stream: Stream
    stream_options: Options
    echo: Annotated[
        bool,
        Flag(default=False, is_nullable=True),
        "Puts the prompt before its answer. Without stream.",
    ]
    user: User
    best_of: Annotated[None, refused(1), NOT_SUPPORTED]
    frequency_penalty: NoPenalty
    logit_bias: NoBias
    logprobs: Annotated[None, refused(), NOT_SUPPORTED]
    presence_penalty: NoPenalty
    suffix: Annotated[None, refused(""), NOT_SUPPORTED]


class Chat(NamedTuple):
    messages: Annotated[tuple[Message, ...], Messages(is_required=True), "The chat so far."]
    model: ModelName
    max_completion_tokens: MaxTokens
    max_tokens: MaxTokens
    temperature: Temperature
    top_p: TopP
    top_k: TopK
    n: Choices
    seed: Seed
    stop: Stop
    stream: Stream
    stream_options: Options
    user: User
    frequency_penalty: NoPenalty
    function_call: Annotated[None, refused("none"), NOT_SUPPORTED]
    functions: Annotated[None, refused([]), NOT_SUPPORTED]
    logit_bias: NoBias
    # Annotations that are equal become one object, and False equals 0.
    logprobs: Annotated[bool | None, refused(False), NOT_SUPPORTED]
    presence_penalty: NoPenalty
    response_format: Annotated[None, refused({"type": "text"}), NOT_SUPPORTED]
    tool_choice: Annotated[None, refused("none"), NOT_SUPPORTED]
    tools: Annotated[None, refused([]), NOT_SUPPORTED]
    top_logprobs: Annotated[None, refused(0), NOT_SUPPORTED]


class OpenAiRequests:
    def __init__(self, limits: RequestLimits) -> None:
        self.completion = Object(Completion, "Completion").within(limits)
        self.chat = Object(Chat, "Chat").within(limits)
        self._limits = limits

    # Any: JSON.
    def read_completion(self, document: Mapping[str, Any]) -> GenerationTask:
        """Returns the task of a completion; an `InvalidRequestError` names every problem."""
        problems = Problems()
        asked = self.completion.convert(document, "", problems)
        for problem in self._contradictions(asked, problems, asked.prompt):
            problems.add("", problem)
        if not problems.concern("echo", "stream") and asked.echo and asked.stream:
            problems.add("", "echo=true and stream=true do not go together: leave one of them out.")
        problems.finish()
        return _task(
            asked,
            asked.prompt.values,
            CompletionForm.new(asked.model, asked.n, asked.stream_options.include_usage),
            max_new_tokens=asked.max_tokens,
            has_prompt=asked.echo,
        )

    # Any: JSON.
    def read_chat(
        self, document: Mapping[str, Any], template: ChatTemplate | str
    ) -> GenerationTask:
        """Returns the task of a chat; an `InvalidRequestError` names every problem.

        A string as `template` is the reason why the model has none.
        """
        if isinstance(template, str):
            raise InvalidRequestError(template)
        problems = Problems()
        asked = self.chat.convert(document, "", problems)
        for problem in self._contradictions(asked, problems):
            problems.add("", problem)
        is_newer = asked.max_completion_tokens is not None
        if is_newer and asked.max_tokens is not None:
            problems.add(
                "",
                "max_tokens and max_completion_tokens are two names of one limit: leave one of "
                "them out.",
            )
        problems.finish()
        return _task(
            asked,
            (template.render([each.for_template() for each in asked.messages]),),
            ChatForm.new(asked.model, asked.n, asked.stream_options.include_usage),
            max_new_tokens=asked.max_completion_tokens if is_newer else asked.max_tokens,
            length_field="max_completion_tokens" if is_newer else "max_tokens",
            adds_special_tokens=False,
        )

    def _contradictions(
        self, asked: Completion | Chat, problems: Problems, prompt: Inputs[str] | None = None
    ) -> Iterator[str]:
        """Yields the problems of fields that do not go together.

        A field with a problem of its own has no meaning. `prompt` has the texts of a completion.
        """
        has_count = not problems.concern("n")
        has_texts = prompt is not None and not problems.concern("prompt")
        texts = len(prompt.values) if prompt is not None and has_texts else 1
        if (
            asked.stream_options.include_usage
            and not asked.stream
            and not problems.concern("stream", "stream_options")
        ):
            yield "stream_options would have no effect: set stream to true as well."
        is_greedy = asked.temperature == 0 and not problems.concern("temperature")
        if has_count and asked.n > 1 and is_greedy:
            yield (
                f"n={asked.n} and temperature=0 do not go together, which has one answer: raise "
                "the temperature, or leave n out."
            )
        if asked.stream and not problems.concern("stream"):
            if has_count and asked.n > 1:
                yield f"stream=true and n={asked.n} do not go together: leave one of them out."
            if texts > 1:
                yield (
                    f"stream=true and prompt of {texts} texts do not go together: send one text, "
                    "or set stream to false."
                )
        most = self._limits.max_batch_size
        if has_count and asked.n > 1 and texts * asked.n > most:
            yield (
                f"prompt holds {texts} texts of n={asked.n} answers each, {texts * asked.n} "
                f"together; the endpoint computes at most {most} at a time (max_batch_size): send "
                f"at most {most // asked.n}, or ask for fewer answers."
            )


def _task(
    asked: Completion | Chat,
    texts: tuple[str, ...],
    form: CompletionForm | ChatForm,
    *,
    max_new_tokens: int | None,
    length_field: str = "max_tokens",
    has_prompt: bool = False,
    adds_special_tokens: bool = True,
) -> GenerationTask:
    sampling = Sampling(asked.temperature, asked.top_k, asked.top_p, asked.seed)
    return GenerationTask(
        texts=texts,
        form=form,
        max_new_tokens=max_new_tokens,
        length_field=length_field,
        sampling=sampling if asked.temperature else None,
        sequences=asked.n,
        stop_texts=asked.stop or (),
        has_prompt=has_prompt,
        is_streamed=asked.stream,
        adds_special_tokens=adds_special_tokens,
    )
