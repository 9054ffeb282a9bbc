"""Answers requests of S3 that moto would take, and hands all others to moto."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from slipway.embedded_aws.objects.conditions import write_of
from slipway.embedded_aws.objects.digests import Refusal, find_wrong_digest

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment


_INCOMPLETE = Refusal(
    "IncompleteBody",
    "You did not provide the number of bytes specified by the Content-Length HTTP header",
)


class ObjectFront:
    """S3's front: checks the digests and the conditions of a request."""

    def __init__(self, storage: WSGIApplication) -> None:
        self._storage = storage
        # One request at a time: moto fails where an object is replaced while another request
        # reads it or takes its digest.
        self._lock = threading.Lock()

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answers one request."""
        refusal, write = None, write_of(environ)
        with self._lock:
            was_there = write is not None and write.is_there()
        if environ.get("CONTENT_LENGTH"):
            # Read once, since moto keeps the whole body in memory as well.
            length = int(environ["CONTENT_LENGTH"])
            body = environ["wsgi.input"].read(length)
            environ["wsgi.input"] = io.BytesIO(body)
            refusal = _INCOMPLETE if len(body) < length else find_wrong_digest(environ, body)
        if refusal is None and write is not None:
            refusal = write.find_denial()
        if refusal is None:
            with self._lock:
                refusal = write.find_conflict(was_there=was_there) if write is not None else None
                if refusal is None:
                    return self._storage(environ, start_response)
        return _refuse(refusal, environ, start_response)


def _refuse(
    refusal: Refusal, environ: WSGIEnvironment, start_response: StartResponse
) -> Iterable[bytes]:
    body = (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f"<Error><Code>{refusal.code}</Code><Message>{escape(refusal.message)}</Message>"
        f"<RequestId>{environ['slipway.request_id']}</RequestId></Error>"
    ).encode()
    start_response(
        refusal.status,
        [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))],
    )
    return [body]
