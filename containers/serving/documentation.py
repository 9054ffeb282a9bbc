"""The description of an endpoint's requests, as JSON and as an HTML page, for local runs.

The page is generated from the OpenAPI document. It has no scripts and loads no other files.
"""

import html
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

OPENAPI_PATH: Final = "/openapi.json"
DOCS_PATH: Final = "/docs"

_CONTENT_SECURITY_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"
_STYLE: Final = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 56rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse; width: 100% }
th, td { border-bottom: 1px solid #ccc; padding: .3rem .6rem; text-align: left }
td { vertical-align: top }
pre, code { font: 14px/1.4 ui-monospace, monospace }
pre { background: #f4f4f4; padding: .6rem; white-space: pre-wrap; overflow-wrap: anywhere }
@media (prefers-color-scheme: dark) {
  body { background: #161616; color: #e6e6e6 } pre { background: #262626 } a { color: #8ab4f8 }
}
"""


# Any: a JSON document.
def documentation_routes(document: Mapping[str, Any]) -> tuple[Route, ...]:
    """Returns GET /openapi.json and GET /docs for an OpenAPI document."""
    data = json.dumps(document).encode()
    page = render_page(document).encode()

    async def answer_data(_request: Request) -> Response:
        return Response(data, media_type="application/json")

    async def answer_page(_request: Request) -> Response:
        return Response(
            page,
            media_type="text/html",
            headers={"Content-Security-Policy": _CONTENT_SECURITY_POLICY},
        )

    return (
        Route(OPENAPI_PATH, answer_data, methods=["GET"]),
        Route(DOCS_PATH, answer_page, methods=["GET"]),
    )


def render_page(document: Mapping[str, Any]) -> str:
    """Returns the document as HTML.

    Args:
        document: OpenAPI 3.1; its schemas are under `components` and refer to one another only by
            `$ref`.
    """
    title = html.escape(document["info"]["title"])
    parts = [f"<h1>{title}</h1>", _paragraphs(document["info"].get("description", ""))]
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            parts += _operation(f"{method.upper()} {path}", operation)
    for name, schema in document["components"]["schemas"].items():
        parts += _schema(name, schema)
    parts.append(f'<p><a href="{OPENAPI_PATH}">This document as OpenAPI</a></p>')
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{_STYLE}</style></head><body>\n" + "\n".join(parts) + "\n</body></html>\n"
    )


def _operation(name: str, operation: Mapping[str, Any]) -> list[str]:
    parts = [f"<h2><code>{html.escape(name)}</code></h2>", _paragraphs(operation["description"])]
    content = operation.get("requestBody", {}).get("content", {})
    for media_type, body in content.items():
        parts.append(f"<p>Takes {_type(body['schema'])} as <code>{html.escape(media_type)}</code>.")
        for example in body.get("examples", {}).values():
            parts.append(f"<p>{html.escape(example['summary'])}</p>{_json(example['value'])}")
    rows = [
        (f"<code>{status}</code>", html.escape(answer["description"]), _contents(answer))
        for status, answer in operation["responses"].items()
    ]
    return [*parts, "<h3>Answers</h3>", _table(("status", "when", "body"), rows)]


def _schema(name: str, schema: Mapping[str, Any]) -> list[str]:
    parts = [f'<h2 id="{html.escape(name)}">{html.escape(name)}</h2>']
    parts.append(_paragraphs(schema.get("description", "")))
    if "properties" not in schema:
        return [*parts, f"<p>{_type(schema)}</p>"]
    required = schema.get("required", ())
    rows = [
        (
            f"<code>{html.escape(field)}</code>" + (", required" if field in required else ""),
            _type(value),
            html.escape(value.get("description", "")),
        )
        for field, value in schema["properties"].items()
    ]
    return [*parts, _table(("field", "value", "meaning"), rows)]


def _type(schema: Mapping[str, Any]) -> str:
    """Returns a short HTML description of a schema's type."""
    if reference := schema.get("$ref"):
        name = html.escape(reference.rpartition("/")[2])
        return f'<a href="#{name}">{name}</a>'
    if alternatives := schema.get("oneOf"):
        return " or ".join(_type(each) for each in alternatives)
    if "enum" in schema:
        return " or ".join(
            f"<code>{html.escape(json.dumps(each))}</code>" for each in schema["enum"]
        )
    names = schema.get("type", "anything")
    words = html.escape(" or ".join(names) if isinstance(names, list) else names)
    if names == "array":
        words += f" of {_type(schema['items'])}"
    limits = [
        f"{label} {schema[key]}"
        for key, label in (
            ("minimum", "from"),
            ("exclusiveMinimum", "above"),
            ("maximum", "to"),
            ("minLength", "length from"),
            ("maxLength", "to"),
            ("minItems", "entries from"),
            ("maxItems", "to"),
        )
        if key in schema
    ]
    if limits:
        words += f", {' '.join(limits)}"
    if "default" in schema:
        words += f"; without it <code>{html.escape(json.dumps(schema['default']))}</code>"
    return words


def _contents(answer: Mapping[str, Any]) -> str:
    return "<br>".join(
        f"{_type(body['schema'])} as <code>{html.escape(media_type)}</code>"
        for media_type, body in answer.get("content", {}).items()
    )


def _json(value: object) -> str:
    return f"<pre>{html.escape(json.dumps(value, ensure_ascii=False))}</pre>"


def _paragraphs(text: str) -> str:
    return "".join(f"<p>{html.escape(part)}</p>" for part in text.split("\n\n") if part)


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["<tr>" + "".join(f"<th>{head}</th>" for head in heads) + "</tr>"]
    lines += ["<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows]
    return "<table>\n" + "\n".join(lines) + "\n</table>"
