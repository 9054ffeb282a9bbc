"""Who may see the pages: a browser that was opened with the token, at their own address."""

import hmac
import secrets
from typing import Final

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK: Final = "127.0.0.1"
_HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_READING: Final = frozenset({"GET", "HEAD"})
_NOT_ADMITTED: Final = (
    "This browser has not shown the token of this page, or `slipway ui` was started anew.\n"
    "Open the whole address that `slipway ui` printed.\n"
)
_ADMITTED: Final = """<!doctype html><html lang="en"><title>Slipway</title>
<link rel="icon" href="data:,">
<meta http-equiv="refresh" content="0; url=/"><p><a href="/">Go on to Slipway</a></p></html>
"""


class Guard:
    """Lets a request pass to the pages, or answers it with the reason that it may not.

    The address has to show the token once. Cookies of one host are for all its ports, so that the
    name of the cookie has the port.
    """

    def __init__(self, app: ASGIApp, token: str, port: int) -> None:
        self._app = app
        self._token = token
        self._session = secrets.token_urlsafe(32)
        self._cookie = f"slipway-ui-{port}"
        # Not `localhost`: that may be ::1, where another user's server may listen.
        self._host = f"{LOOPBACK}:{port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            # No page has a web socket; the server asks for nothing else.
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        answer = self._refusal(Request(scope)) or self._app
        await answer(scope, receive, send_guarded)

    def _refusal(self, request: Request) -> Response | None:
        """Returns the answer in place of a page; None for a request that may pass."""
        headers, is_reading = request.headers, request.method in _READING
        host, origin = headers.get("host", ""), headers.get("origin")
        # Another name that was bound to this address: DNS rebinding.
        if host != self._host:
            return _refused(f"`slipway ui` has no name {host!r}.\n")
        token = request.query_params.get("token")
        # A link from elsewhere may bring the token. Browsers name the origin of what writes.
        is_ours = headers.get("sec-fetch-site", "none") in ("none", "same-origin") or (
            token is not None and is_reading
        )
        if not is_ours or origin != (f"http://{host}" if origin or not is_reading else None):
            return _refused("`slipway ui` answers its own pages only.\n")
        if token is not None:
            return self._admission() if _same(token, self._token) else _refused(_NOT_ADMITTED)
        if not _same(request.cookies.get(self._cookie, ""), self._session):
            return _refused(_NOT_ADMITTED)
        return None

    def _admission(self) -> Response:
        """Returns the cookie, with a page that leads to an address without the token.

        A redirect would still belong to the site that has the link, and come without the cookie.
        """
        page = HTMLResponse(_ADMITTED)
        page.set_cookie(self._cookie, self._session, httponly=True, samesite="strict")
        return page


def _refused(reason: str) -> Response:
    return PlainTextResponse(reason, status_code=403)


def _same(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode(), expected.encode())
