"""The OpenAPI document of an endpoint, generated from the tables that requests are checked with."""

from typing import Any

from containers.serving.openapi import JSON, Schema, endpoint_document, object_schema, reference
from containers.tensorrt.parameters import Parameters, RequestLimits
from containers.tensorrt.requests import FIELDS, STREAM
from containers.tensorrt.settings import GenerationSettings


def openapi_document(settings: GenerationSettings, limits: RequestLimits) -> Schema:
    """Returns the OpenAPI document of an endpoint.

    Args:
        settings: gives the longest prompt and the default number of new tokens.
        limits: the endpoint's limits, which become bounds of the schemas.
    """
    parameters = Parameters(limits)
    longest = settings.max_input_tokens
    prompt = "at most " + (f"{longest} tokens" if longest else "as many tokens as the model takes")
    properties: dict[str, Schema] = {
        "inputs": {
            "oneOf": [
                {"type": "string", "minLength": 1},
                {
                    "type": "array",
                    "items": {"type": "string", "minLength": 1},
                    "minItems": 1,
                    "maxItems": limits.max_texts,
                },
            ],
            "description": f"One text or several, each of {prompt}. Several sequences to each text "
            f"must fit one batch: {limits.max_batch_size} sequences together.",
        },
        "parameters": reference("Parameters"),
        "stream": STREAM.schema(),
    }
    schemas = {
        "Request": object_schema({name: properties[name] for name in FIELDS}, required=["inputs"]),
        "Parameters": object_schema(
            {name: parameter.schema() for name, parameter in parameters.by_name.items()}
        )
        | {
            "description": "A parameter that is not known, would have no effect or contradicts "
            f"another one is an error. Without max_new_tokens it is {settings.default_new_tokens}, "
            "or what the model's positions leave."
        },
        "Answers": {
            "type": "array",
            "items": object_schema(
                {"generated_text": {"type": "string"}}, required=["generated_text"]
            ),
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
        schemas=schemas,
    )


# Any: JSON.
def _examples(limits: RequestLimits) -> dict[str, tuple[str, Any]]:
    """Returns examples of valid requests for this endpoint."""
    new_tokens = min(12, limits.max_new_tokens)
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
