"""The page about an endpoint's requests, which only local runs show."""

import hashlib
from base64 import b64encode
from html.parser import HTMLParser

import httpx
import pytest

from containers.serving.server import ModelServer
from containers.serving.settings import ServingSettings
from tests.support.servers import EchoPredictor

pytestmark = pytest.mark.anyio

DOCUMENT = {"openapi": "3.1.1", "info": {"title": "A title", "version": "1"}, "paths": {}}


class Page(HTMLParser):
    """Collects what a browser would run or load."""

    def __init__(self, text):
        super().__init__()
        self.scripts = []
        self.addresses = []
        self._is_script = False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self._is_script = tag == "script"
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href")]

    def handle_data(self, data):
        if self._is_script:
            self.scripts.append(data)

    def handle_endtag(self, _tag):
        self._is_script = False


async def test_a_local_run_shows_both_and_the_page_loads_nothing_else():
    server = ModelServer(EchoPredictor(), ServingSettings(serves_docs=True), document=DOCUMENT)
    app = server._uvicorn.config.app
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app=app), base_url="http://test"
    ) as client:
        assert (await client.get("/openapi.json")).json() == DOCUMENT
        response = await client.get("/docs")
    await server.service.close()
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    page = Page(response.text)
    [start] = [script for script in page.scripts if "window.onload" in script]
    assert "SwaggerUIBundle({" in start
    assert "url: '/openapi.json'" in start
    assert all(address.startswith("data:") for address in page.addresses)
    policy = dict(
        directive.split(" ", 1)
        for directive in response.headers["content-security-policy"].split("; ")
    )
    digests = [b64encode(hashlib.sha256(each.encode()).digest()) for each in page.scripts]
    assert policy == {
        "default-src": "'none'",
        "script-src": " ".join(f"'sha256-{digest.decode()}'" for digest in digests),
        "style-src": "'unsafe-inline'",
        "img-src": "data:",
        "connect-src": "'self'",
    }


async def test_only_a_server_that_is_told_so_shows_it():
    server = ModelServer(EchoPredictor(), ServingSettings(), document=DOCUMENT)
    routes = {route.path for route in server._uvicorn.config.app.routes}
    assert routes == {"/ping", "/invocations"}
    await server.service.close()
