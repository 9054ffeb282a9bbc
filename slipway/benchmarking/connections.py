"""Connections that cost a load driver little: asyncio's transports, and httptools for the answers.

A connection has one request under way at a time. Use one event loop of uvloop for all of them.
"""

import asyncio
import functools
import os
import ssl
import time
from dataclasses import dataclass
from http import HTTPStatus
from typing import cast
from urllib.parse import urlsplit

import httptools
from botocore.httpsession import get_cert_path

_CONNECT_SECONDS = 10.0
_LONGEST_MESSAGE_CHARACTERS = 500


class LoadError(Exception):
    """A request has no answer, or the load cannot go on; the message says why."""


@dataclass(slots=True)
class Reply:
    """An answer; headers have small letters, and parts have times of `time.perf_counter`."""

    status: int
    headers: dict[str, str]
    parts: list[tuple[float, bytes]]

    @property
    def body(self) -> bytes:
        return b"".join(part for _, part in self.parts)

    @property
    def failure(self) -> str | None:
        """Returns what another status than 200 says; None for an answer."""
        if self.status == HTTPStatus.OK:
            return None
        text = self.body.decode("utf-8", "replace")[:_LONGEST_MESSAGE_CHARACTERS]
        return f"a request was answered with {self.status}: {text}"


class _Protocol(asyncio.Protocol):
    """One socket, with the answer that it waits for."""

    def __init__(self) -> None:
        self.transport: asyncio.WriteTransport
        self.is_closed = False
        self._waiter: asyncio.Future[Reply] | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._headers: dict[str, str] = {}
        self._parts: list[tuple[float, bytes]] = []
        self._has_begun = self._is_last = False

    def send(self, request: bytes) -> "asyncio.Future[Reply]":
        self._headers, self._parts, self._has_begun = {}, [], False
        self._waiter = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        return self._waiter

    # asyncio calls these.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are of no class of asyncio's.
        self.transport = cast("asyncio.WriteTransport", transport)

    def data_received(self, data: bytes) -> None:
        self._has_begun = True
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(_failed(error))
            self.close()

    def connection_lost(self, _error: Exception | None) -> None:
        self.is_closed = True
        message = "a request failed: the connection was closed"
        if self._has_begun:
            self._fail(LoadError(f"{message} during an answer"))
        else:
            self._fail(_ClosedError(f"{message} before an answer"))

    def close(self) -> None:
        self.is_closed = True
        self.transport.abort()

    def _fail(self, error: Exception) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(error)

    # httptools calls these.

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        # The parser forgets it with the end of the answer.
        self._is_last = not self._parser.should_keep_alive()

    def on_body(self, part: bytes) -> None:
        self._parts.append((time.perf_counter(), part))

    def on_message_complete(self) -> None:
        reply = Reply(self._parser.get_status_code(), self._headers, self._parts)
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(reply)
        if self._is_last:
            self.close()


class _ClosedError(LoadError):
    """The server closed the connection before it answered."""


def _failed(error: Exception) -> LoadError:
    return LoadError(f"a request failed: {type(error).__name__}: {str(error) or 'timed out'}")


class Connection:
    """A connection that is opened when it is needed, and anew after the server has closed it.

    The time limit is from sending a request to the last byte of its answer.
    """

    def __init__(self, url: str, timeout_seconds: float) -> None:
        address = urlsplit(url)
        self._host, self._is_secure = address.hostname or "", address.scheme == "https"
        self._port = address.port or (443 if self._is_secure else 80)
        self._timeout_seconds = timeout_seconds
        self._protocol: _Protocol | None = None

    async def exchange(self, request: bytes) -> Reply:
        """Sends the bytes of a request; returns the answer of any status; raises `LoadError`."""
        try:
            async with asyncio.timeout(self._timeout_seconds):
                if self._protocol is not None and not self._protocol.is_closed:
                    try:
                        return await self._protocol.send(request)
                    except _ClosedError:
                        pass  # The server closes an idle connection: not the request's fault.
                return await (await self.open()).send(request)
        except OSError as error:  # TimeoutError is one
            self.close()
            raise _failed(error) from None
        except asyncio.CancelledError:
            self.close()
            raise

    async def open(self) -> _Protocol:
        """Opens the connection, so that the first request need not wait; raises `LoadError`."""
        # The certificates that botocore would trust.
        bundle = os.environ.get("AWS_CA_BUNDLE") or get_cert_path(True)
        tls = _tls(str(bundle)) if self._is_secure else None
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                _, self._protocol = await asyncio.get_running_loop().create_connection(
                    _Protocol, self._host, self._port, ssl=tls
                )
        except OSError as error:
            raise _failed(error) from None
        return self._protocol

    def close(self) -> None:
        """Closes the connection; another request opens it again."""
        if self._protocol is not None:
            self._protocol.close()
            self._protocol = None


@functools.cache
def _tls(bundle: str) -> ssl.SSLContext:
    """Returns the settings of TLS; reading the certificates takes its time."""
    return ssl.create_default_context(cafile=bundle)
