"""Answers in the forms of OpenAI's API, from results."""

from __future__ import annotations

from dataclasses import dataclass

from tensorrt_llm.executor.postproc_worker import PostprocArgs
from tensorrt_llm.serve.openai_protocol import (
    CompletionResponse,
    CompletionResponseChoice,
    CompletionResponseStreamChoice,
    CompletionStreamResponse,
    StreamOptions,
    UsageInfo,
)


@dataclass(kw_only=True)
class CompletionPostprocArgs(PostprocArgs):
    """What the makers of completions are told; the handler fills in the prompt."""

    echo: bool | None = False
    model: str
    prompt_idx: int = 0
    prompt: str | None = None
    stream_options: StreamOptions | None = None

    @classmethod
    def from_request(cls, request):
        return cls(echo=request.echo, model=request.model, stream_options=request.stream_options)


def _usage(result, args):
    (output,) = result.outputs
    prompt_tokens = args.num_prompt_tokens
    return UsageInfo(
        prompt_tokens=prompt_tokens,
        completion_tokens=output.length,
        total_tokens=prompt_tokens + output.length,
    )


def completion_response_post_processor(result, args):
    (output,) = result.outputs
    choice = CompletionResponseChoice(
        index=args.prompt_idx,
        text=(args.prompt or "") + output.text if args.echo else output.text,
        finish_reason=output.finish_reason,
        stop_reason=output.stop_reason,
    )
    return CompletionResponse(model=args.model, choices=[choice], usage=_usage(result, args))


def completion_stream_post_processor(result, args):
    """Returns the events of a step: its text, and after the last one what was used."""
    (output,) = result.outputs
    text = output.text_diff
    if args.echo and args.first_iteration:
        text = (args.prompt or "") + text
    args.first_iteration = False
    choice = CompletionResponseStreamChoice(
        index=args.prompt_idx,
        text=text,
        finish_reason=output.finish_reason,
        stop_reason=output.stop_reason,
    )
    options = args.stream_options
    usage = _usage(result, args) if options and options.include_usage else None
    continuous = usage if options and options.continuous_usage_stats else None
    chunks = [CompletionStreamResponse(model=args.model, choices=[choice], usage=continuous)]
    if usage is not None and result._done:
        chunks.append(CompletionStreamResponse(model=args.model, choices=[], usage=usage))
    return [f"data: {chunk.model_dump_json()}\n\n" for chunk in chunks]


# Imported by the handler; the stand-in has no chats.
ChatPostprocArgs = PostprocArgs
chat_response_post_processor = chat_stream_post_processor = None
