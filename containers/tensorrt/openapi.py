"""The OpenAPI document of an endpoint: its requests and answers, with its own limits."""

from typing import Any

from containers.serving.openapi import JSON, Schema, endpoint_document, object_schema, reference
from containers.tensorrt.parameters import RequestLimits
from containers.tensorrt.requests import GenerationRequests


def openapi_document(limits: RequestLimits) -> Schema:
    """Returns the OpenAPI document of an endpoint with these limits."""
    answer = object_schema({"generated_text": {"type": "string"}}, required=["generated_text"])
    schemas: dict[str, Schema] = {
        "Answers": {
            "type": "array",
            "items": answer,
            "description": "All answers to the first text, then the next one's.",
        },
        "Event": {"type": "string", "description": "data: and a JSON object, for each piece."},
    }
    return endpoint_document(
        title="Text generation",
        calls="InvokeEndpoint and InvokeEndpointWithResponseStream",
        does="Continues one text or several.",
        examples=_examples(limits),
        answer={
            "description": "The answers, or the pieces of the one answer where stream is true.",
            "content": {
                JSON: {"schema": reference("Answers")},
                "text/event-stream": {"schema": reference("Event")},
            },
        },
        schemas=GenerationRequests(limits).description.components() | schemas,
    )


# Any: JSON.
def _examples(limits: RequestLimits) -> dict[str, tuple[str, Any]]:
    """Returns examples of valid requests for this endpoint."""
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
    }
    if limits.max_texts > 1:
        examples["several"] = ("Two texts.", {"inputs": ["The maximum", "The minimum"]})
    if limits.max_batch_size > 1:
        examples["beams"] = (
            "The two best of a beam search.",
            {"inputs": "The name of", "parameters": {"num_beams": 2, "num_return_sequences": 2}},
        )
    return dict(examples)
