"""The OpenAPI document of an endpoint: its requests and answers, with its own limits."""

from typing import Any

from containers.serving.events import MEDIA_TYPE
from containers.serving.openapi import JSON, Schema, endpoint_document, object_schema, reference
from containers.tensorrt.openai.answers import ChatForm, CompletionForm
from containers.tensorrt.parameters import RequestLimits
from containers.tensorrt.requests import BodyReader


def openapi_document(limits: RequestLimits) -> Schema:
    bodies = BodyReader(limits)
    answer = object_schema({"generated_text": {"type": "string"}}, required=["generated_text"])
    requests = (bodies.text_generation.description, bodies.openai.completion, bodies.openai.chat)
    schemas: dict[str, Schema] = {
        "Request": {
            "oneOf": [reference(request.name) for request in requests],
            "description": "Hugging Face's form, or one of OpenAI's two.",
        },
        "Answers": {
            "type": "array",
            "items": answer,
            "description": "All answers to the first text, then the next one's.",
        },
        "CompletionAnswer": _openai_answer(
            CompletionForm.whole, {"text": {"type": "string"}}, "The answers to a completion."
        ),
        "ChatAnswer": _openai_answer(
            ChatForm.whole,
            {
                "message": object_schema(
                    {"role": {"const": "assistant"}, "content": {"type": "string"}},
                    required=["role", "content"],
                )
            },
            "The next message of a chat.",
        ),
        "Event": {
            "type": "string",
            "description": "data: and a JSON object, for each piece. In OpenAI's forms the last "
            "event is data: [DONE].",
        },
    }
    for request in requests:
        schemas |= request.components()
    answers = [reference(name) for name in ("Answers", "CompletionAnswer", "ChatAnswer")]
    return endpoint_document(
        title="Text generation",
        calls="InvokeEndpoint and InvokeEndpointWithResponseStream",
        does="Continues one text or several, or answers a chat.",
        examples=_examples(limits),
        answer={
            "description": "The answers, or the pieces of the one answer where stream is true.",
            "content": {
                JSON: {"schema": {"oneOf": answers}},
                MEDIA_TYPE: {"schema": reference("Event")},
            },
        },
        schemas=schemas,
    )


def _openai_answer(kind: str, text: dict[str, Schema], description: str) -> Schema:
    choice = object_schema(
        {
            "index": {"type": "integer"},
            **text,
            "logprobs": {"type": "null"},
            "finish_reason": {"enum": ["stop", "length"]},
        },
        required=["index", *text, "logprobs", "finish_reason"],
    )
    count: Schema = {"type": "integer", "minimum": 0}
    usage = dict.fromkeys(("prompt_tokens", "completion_tokens", "total_tokens"), count)
    fields: dict[str, Schema] = {
        "id": {"type": "string"},
        "object": {"const": kind},
        "created": {"type": "integer"},
        "model": {"type": "string"},
        "choices": {"type": "array", "items": choice},
        "usage": object_schema(usage, required=list(usage)),
    }
    return object_schema(fields, required=list(fields)) | {"description": description}


# Any: JSON.
def _examples(limits: RequestLimits) -> dict[str, tuple[str, Any]]:
    new_tokens = min(12, limits.generation.max_new_tokens)
    examples: dict[str, tuple[str, dict[str, Any]]] = {
        "greedy": (
            "The likeliest continuation.",
            {"inputs": "The maximum number of", "parameters": {"max_new_tokens": new_tokens}},
        ),
        "sampled": (
            "Drawn, with a seed.",
            {
                "inputs": "The name of",
                "parameters": {"do_sample": True, "top_p": 0.9, "seed": 7, "stop": ["\n"]},
            },
        ),
        "streamed": ("Piece by piece.", {"inputs": "The name of", "stream": True}),
        "completion": (
            "OpenAI's form of a completion.",
            {"prompt": "The maximum number of", "max_tokens": new_tokens, "temperature": 0},
        ),
        "chat": (
            "OpenAI's form of a chat; the model needs a chat template.",
            {
                "messages": [{"role": "user", "content": "What is a bucket?"}],
                "max_tokens": new_tokens,
            },
        ),
    }
    if limits.max_texts > 1:
        examples["several"] = ("Two texts.", {"inputs": ["The maximum", "The minimum"]})
    if limits.max_batch_size > 1:
        examples["beams"] = (
            "The two best of a beam search.",
            {"inputs": "The name of", "parameters": {"num_beams": 2, "num_return_sequences": 2}},
        )
    return dict(examples)
