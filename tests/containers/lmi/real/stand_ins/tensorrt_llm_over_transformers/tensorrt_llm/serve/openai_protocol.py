"""The forms of requests and answers. A field that they do not have is refused."""

from __future__ import annotations

import time
import uuid
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from tensorrt_llm.llmapi import SamplingParams


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid")


class StreamOptions(_Form):
    include_usage: bool | None = True
    continuous_usage_stats: bool | None = True


class UsageInfo(_Form):
    prompt_tokens: int = 0
    total_tokens: int = 0
    completion_tokens: int | None = 0


class ErrorResponse(_Form):
    object: str = "error"
    message: str
    type: str
    param: str | None = None
    code: int


class _Choice(_Form):
    index: int
    text: str
    token_ids: list[int] | None = None
    logprobs: None = None
    finish_reason: str | None = None
    stop_reason: int | str | None = None


class CompletionResponseChoice(_Choice):
    context_logits: list[float] | None = None
    disaggregated_params: None = None


class CompletionResponseStreamChoice(_Choice):
    pass


class _Response(_Form):
    id: str = Field(default_factory=lambda: f"cmpl-{uuid.uuid4().hex}")
    object: str = "text_completion"
    created: int = Field(default_factory=lambda: int(time.time()))
    model: str


class CompletionResponse(_Response):
    choices: list[CompletionResponseChoice]
    usage: UsageInfo


class CompletionStreamResponse(_Response):
    choices: list[CompletionResponseStreamChoice]
    usage: UsageInfo | None = None


class _Request(_Form):
    model: str
    frequency_penalty: float | None = 0.0
    n: int = 1
    presence_penalty: float | None = 0.0
    seed: int | None = None
    stop: str | list[str] | None = Field(default_factory=list)
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    temperature: float | None = 1.0
    top_p: float | None = 1.0
    user: str | None = None
    best_of: int | None = None
    use_beam_search: bool = False
    top_k: int = 0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    stop_token_ids: list[int] | None = Field(default_factory=list)
    ignore_eos: bool = False
    min_tokens: int = 0
    skip_special_tokens: bool = True
    truncate_prompt_tokens: int | None = Field(default=None, ge=1)
    disaggregated_params: None = None


class CompletionRequest(_Request):
    prompt: list[int] | list[list[int]] | str | list[str]
    echo: bool | None = False
    logprobs: int | None = None
    max_tokens: int | None = None
    suffix: str | None = None
    return_context_logits: bool = False
    detokenize: bool = True

    @model_validator(mode="before")
    @classmethod
    def refuse(cls, data):
        if data.get("logprobs"):
            raise ValueError("logprobs is not supported")
        if data.get("stream_options") and not data.get("stream"):
            raise ValueError("Stream options can only be defined when stream is true.")
        if data.get("suffix"):
            raise ValueError("suffix is not supported")
        return data

    def to_sampling_params(self):
        if not self.detokenize:
            raise NotImplementedError("the stand-in has no detokenize=False")
        common = SamplingParams.__dataclass_fields__.keys() & type(self).model_fields.keys()
        return SamplingParams(**{name: getattr(self, name) for name in common})


class ChatCompletionRequest(_Request):
    """Only as far as the template, which the sample has none of."""

    messages: list[dict[str, Any]]
    tools: None = None
    echo: bool = False
    add_generation_prompt: bool = True
    documents: list[dict[str, str]] | None = None
    chat_template: str | None = None
    chat_template_kwargs: dict[str, Any] | None = None


# Imported by the handler, without use.
ChatCompletionResponse = CompletionLogProbs = ModelCard = ModelList = _Form


def to_llm_disaggregated_params(disaggregated_params):
    """Of servers that share a request's work; here there is one."""
    return disaggregated_params
