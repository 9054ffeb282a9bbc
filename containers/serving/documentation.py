"""The description of an endpoint's requests, as JSON and as a page, for local runs.

The page is Swagger UI, from the package offapi. All its scripts and styles are in the page itself.
Browsers are told to run no other scripts, and to reach no other server.
"""

import hashlib
import json
import re
from base64 import b64encode
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

OPENAPI_PATH: Final = "/openapi.json"
DOCS_PATH: Final = "/docs"

_SCRIPT: Final = re.compile("<script>(.*?)</script>", re.DOTALL)


# Any: a JSON document.
def documentation_routes(document: Mapping[str, Any]) -> tuple[Route, ...]:
    data = json.dumps(document).encode()

    def answer_document(_request: Request) -> Response:
        return Response(data, media_type="application/json")

    return (
        Route(OPENAPI_PATH, answer_document, methods=["GET"]),
        Route(DOCS_PATH, _answer_page, methods=["GET"]),
    )


def _answer_page(_request: Request) -> Response:
    page, policy = _page()
    return HTMLResponse(page, headers={"Content-Security-Policy": policy})


@cache
def _page() -> tuple[str, str]:
    """Returns the page, and the policy that allows its own scripts and no others."""
    # Imported here, because it reads megabytes that only a reader of the page needs.
    from offapi import OpenAPITemplate

    page = OpenAPITemplate.SWAGGER.value.format(spec_url=OPENAPI_PATH)
    digests = [hashlib.sha256(script.encode()).digest() for script in _SCRIPT.findall(page)]
    scripts = " ".join(f"'sha256-{b64encode(digest).decode()}'" for digest in digests)
    return page, (
        f"default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; img-src data:; "
        "connect-src 'self'"
    )
