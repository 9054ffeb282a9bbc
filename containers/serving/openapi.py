"""The parts of an OpenAPI document that all families share: errors, /ping, and objects.

(https://spec.openapis.org/oas/v3.1.1.html)
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from containers.serving.errors import ERROR_KINDS, INTERNAL_ERROR

# Any: a JSON document.
Schema: TypeAlias = dict[str, Any]

JSON: Final = "application/json"
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


def endpoint_document(
    *,
    title: str,
    calls: str,
    does: str,
    examples: Mapping[str, tuple[str, Any]],
    answer: Schema,
    schemas: Mapping[str, Schema],
) -> Schema:
    """Returns the OpenAPI document of an endpoint.

    `calls` names the SageMaker APIs through which requests come, and `does` is a sentence about an
    invocation. `examples` are request bodies by name, each with a summary. `answer` is the response
    of status 200. `schemas` has `Request`, and every schema that it and the answer refer to;
    `Error` is added.
    """
    return {
        "openapi": "3.1.1",
        "info": {
            "title": title,
            "version": "1",
            "description": "The requests of this endpoint, with its own limits. On SageMaker they "
            f"go through {calls}.",
        },
        "paths": {
            "/ping": {
                "get": {
                    "operationId": "ping",
                    "description": "Whether the model is loaded.",
                    "responses": {"200": {"description": "It is."}, "503": _error_answer(503)},
                }
            },
            "/invocations": {
                "post": {
                    "operationId": "invoke",
                    "description": does,
                    "requestBody": {
                        "required": True,
                        "content": {
                            JSON: {
                                "schema": reference("Request"),
                                "examples": {
                                    name: {"summary": summary, "value": value}
                                    for name, (summary, value) in examples.items()
                                },
                            }
                        },
                    },
                    "responses": {
                        "200": answer,
                        **{
                            str(status): _error_answer(status)
                            for status in sorted(_codes_by_status())
                        },
                    },
                }
            },
        },
        "components": {"schemas": {**schemas, "Error": _error_schema()}},
    }


def object_schema(properties: Mapping[str, Schema], *, required: list[str] | None = None) -> Schema:
    """Returns the schema of an object that has these fields and no others."""
    names = {"required": required} if required else {}
    fields = {"type": "object", "properties": dict(properties), "additionalProperties": False}
    return fields | names


def reference(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _error_schema() -> Schema:
    by_status = sorted(_codes_by_status().items())
    every = [code for _, codes in by_status for code in codes]
    error = object_schema(
        {"code": {"enum": every}, "message": {"type": "string"}}, required=["code", "message"]
    )
    return object_schema({"error": error}, required=["error"])


def _error_answer(status: int) -> Schema:
    codes = ", ".join(_codes_by_status()[status])
    answer: Schema = {
        "description": f"{_WHEN[status]} ({codes})",
        "content": {JSON: {"schema": reference("Error")}},
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
