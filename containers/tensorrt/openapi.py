"""The OpenAPI document of an endpoint, written from the tables that requests are checked with.

(https://spec.openapis.org/oas/v3.1.1.html)
"""

from collections import defaultdict
from typing import Any, Final

from containers.serving.errors import ERROR_KINDS, INTERNAL_ERROR
from containers.tensorrt.parameters import Parameters, RequestLimits, Schema
from containers.tensorrt.requests import FIELDS, STREAM
from containers.tensorrt.settings import GenerationSettings

_JSON: Final = "application/json"
_WHEN: Final = {
    400: "The request is not what this endpoint takes; the message says which field, what it held "
    "and what is allowed.",
    408: "The body did not arrive in time.",
    413: "The body is too large.",
    415: "The content type is another one.",
    500: "The model failed, or the server did; the log says why under the request's id.",
    503: "Overloaded, still loading, or stopping; Retry-After says in how many seconds to ask "
    "again.",
    504: "The answer was not ready in time.",
}


def openapi_document(settings: GenerationSettings, limits: RequestLimits) -> Schema:
    """Returns the document.

    Args:
        settings: what a prompt may hold, and the default of new tokens.
        limits: what a request may ask for.
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
        "parameters": {"$ref": "#/components/schemas/Parameters"},
        "stream": STREAM.schema(),
    }
    schemas = {
        "Request": _object({name: properties[name] for name in FIELDS}, required=["inputs"]),
        "Parameters": _object(
            {name: parameter.schema() for name, parameter in parameters.by_name.items()}
        )
        | {
            "description": "A parameter that is not known, would have no effect or contradicts "
            f"another one is an error. Without max_new_tokens it is {settings.default_new_tokens}, "
            "or what the model's positions leave."
        },
        "Answers": {
            "type": "array",
            "items": _object({"generated_text": {"type": "string"}}, required=["generated_text"]),
            "description": "All answers to the first text, then the next one's.",
        },
        "Event": {"type": "string", "description": "data: and a JSON object, for each piece."},
        "Error": _object(
            {
                "error": _object(
                    {"code": {"enum": _error_codes()}, "message": {"type": "string"}},
                    required=["code", "message"],
                )
            },
            required=["error"],
        ),
    }
    return {
        "openapi": "3.1.1",
        "info": {
            "title": "Text generation",
            "version": "1",
            "description": "The requests of this endpoint, with its own limits. On SageMaker they "
            "go through InvokeEndpoint and InvokeEndpointWithResponseStream.",
        },
        "paths": {
            "/ping": {
                "get": {
                    "operationId": "ping",
                    "description": "Whether the model is loaded.",
                    "responses": {
                        "200": {"description": "It is."},
                        "503": _error(503),
                    },
                }
            },
            "/invocations": {
                "post": {
                    "operationId": "invoke",
                    "description": "Continues one text or several.",
                    "requestBody": {
                        "required": True,
                        "content": {
                            _JSON: {
                                "schema": {"$ref": "#/components/schemas/Request"},
                                "examples": _examples(limits),
                            }
                        },
                    },
                    "responses": {
                        "200": {
                            "description": "The answers, or the pieces of the one answer where "
                            "stream is true.",
                            "content": {
                                _JSON: {"schema": {"$ref": "#/components/schemas/Answers"}},
                                "text/event-stream": {
                                    "schema": {"$ref": "#/components/schemas/Event"}
                                },
                            },
                        },
                        **{str(status): _error(status) for status in _error_statuses()},
                    },
                }
            },
        },
        "components": {"schemas": schemas},
    }


# Any: JSON.
def _examples(limits: RequestLimits) -> dict[str, Any]:
    """Returns requests that this endpoint takes."""
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
    return {
        name: {"summary": summary, "value": value} for name, (summary, value) in examples.items()
    }


def _object(properties: dict[str, Schema], *, required: list[str] | None = None) -> Schema:
    names = {"required": required} if required else {}
    return {"type": "object", "properties": properties, "additionalProperties": False} | names


def _error(status: int) -> Schema:
    codes = ", ".join(_codes_by_status()[status])
    answer: Schema = {
        "description": f"{_WHEN[status]} ({codes})",
        "content": {_JSON: {"schema": {"$ref": "#/components/schemas/Error"}}},
    }
    if any(
        kind.retry_after_seconds is not None
        for kind in ERROR_KINDS.values()
        if kind.status == status
    ):
        answer["headers"] = {"Retry-After": {"schema": {"type": "integer", "minimum": 1}}}
    return answer


def _codes_by_status() -> dict[int, list[str]]:
    codes: dict[int, list[str]] = defaultdict(list)
    for kind in (*ERROR_KINDS.values(), INTERNAL_ERROR):
        if kind.code not in codes[kind.status]:
            codes[kind.status].append(kind.code)
    return codes


def _error_statuses() -> list[int]:
    return sorted(_codes_by_status())


def _error_codes() -> list[str]:
    return [code for status in _error_statuses() for code in _codes_by_status()[status]]
