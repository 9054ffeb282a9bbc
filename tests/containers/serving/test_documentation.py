"""The page about an endpoint's requests, which only local runs show."""

import pytest

from containers.serving.documentation import render_page
from containers.serving.server import ModelServer
from containers.serving.settings import ServingSettings
from tests.support.servers import EchoPredictor, running_server

pytestmark = pytest.mark.anyio

DOCUMENT = {
    "openapi": "3.1.1",
    "info": {"title": "A <b>title", "version": "1", "description": "One.\n\nTwo."},
    "paths": {
        "/invocations": {
            "post": {
                "description": "Answers.",
                "requestBody": {
                    "content": {
                        "application/json": {
                            "schema": {"$ref": "#/components/schemas/Request"},
                            "examples": {"x": {"summary": "One.", "value": {"a": "<script>"}}},
                        }
                    }
                },
                "responses": {"200": {"description": "Fine."}},
            }
        }
    },
    "components": {
        "schemas": {
            "Request": {
                "type": "object",
                "required": ["a"],
                "properties": {
                    "a": {"type": "integer", "minimum": 1, "maximum": 9, "description": "A & B."},
                    "b": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
                    "c": {"enum": [True, "never"], "default": True},
                },
            }
        }
    },
}


def test_the_page_says_what_the_document_says() -> None:
    page = render_page(DOCUMENT)
    for part in (
        "<h1>A &lt;b&gt;title</h1><p>One.</p><p>Two.</p>".replace("</h1>", "</h1>\n"),
        "POST /invocations",
        '<a href="#Request">Request</a>',
        "<code>a</code>, required</td><td>integer, from 1 to 9</td><td>A &amp; B.</td>",
        "<code>b</code></td><td>array of string, to 3</td>",
        "<code>true</code> or <code>&quot;never&quot;</code></td>",
        "{&quot;a&quot;: &quot;&lt;script&gt;&quot;}",
    ):
        assert part in page


async def test_only_a_server_that_is_told_so_shows_it() -> None:
    for serves_docs in (False, True):
        server = ModelServer(
            EchoPredictor(), ServingSettings(serves_docs=serves_docs), document=DOCUMENT
        )
        routes = {route.path for route in server._uvicorn.config.app.routes}
        assert routes >= {"/ping", "/invocations"}
        assert ("/docs" in routes) == serves_docs
        assert ("/openapi.json" in routes) == serves_docs
        await server.service.close()


async def test_without_it_both_paths_are_unknown() -> None:
    async with running_server(EchoPredictor()) as running:
        for path in ("/docs", "/openapi.json"):
            assert (await running.client.get(path)).json()["error"]["code"] == "not_found"
