"""Connections that cost a load driver little: a socket for each, and httptools for the answers.

The HTTP client of Python's standard library takes three times as much processor time.
"""

import contextlib
import socket
import ssl
from collections.abc import Callable, Iterator

import httptools

from benchmarks.errors import BenchmarkError

_HOST = "127.0.0.1"
_CONNECT_SECONDS = 10.0
_READ_BYTES = 65_536
_OK = 200
_LONGEST_MESSAGE_CHARACTERS = 500

Exchange = Callable[[bytes], bytes]
"""Sends a request's body; returns the answer's."""


class _Connection:
    """A connection that is opened anew after the server has closed it."""

    def __init__(
        self, host: str, port: int, timeout_seconds: float, tls: ssl.SSLContext | None
    ) -> None:
        self._host, self._port, self._tls = host, port, tls
        self._timeout_seconds = timeout_seconds
        self._socket: socket.socket | None = None
        # Of one socket: a parser for each answer would be a circle, and collections are turned off.
        self._parser = httptools.HttpResponseParser(self)
        self._parts: list[bytes] = []
        self._is_complete = self._is_last = False

    def open(self) -> None:
        opened = socket.create_connection((self._host, self._port), timeout=_CONNECT_SECONDS)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._tls:
            opened = self._tls.wrap_socket(opened, server_hostname=self._host)
        opened.settimeout(self._timeout_seconds)
        self._socket, self._parser = opened, httptools.HttpResponseParser(self)

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def exchange(self, request: bytes) -> tuple[int, bytes]:
        """Returns the status and the body of the answer."""
        if self._socket is None:
            self.open()
        elif (found := self._try(request)) is not None:
            return found
        else:
            # The server closes a connection that was idle, and the request is not its fault.
            self.close()
            self.open()
        answer = self._try(request)
        if answer is None:
            raise BenchmarkError("a request failed: the connection was closed before an answer")
        return answer

    def _try(self, request: bytes) -> tuple[int, bytes] | None:
        """Returns the answer; None if the connection ended before its first byte."""
        assert self._socket is not None  # noqa: S101  # `exchange` opened it
        self._parts, self._is_complete = [], False
        try:
            self._socket.sendall(request)
            data = self._socket.recv(_READ_BYTES)
        except (BrokenPipeError, ConnectionResetError, ssl.SSLEOFError):
            return None
        if not data:
            return None
        while data:
            self._parser.feed_data(data)
            if self._is_complete:
                break
            data = self._socket.recv(_READ_BYTES)
        else:
            raise BenchmarkError("a request failed: the connection was closed during an answer")
        if self._is_last:
            self.close()
        return self._parser.get_status_code(), b"".join(self._parts)

    # httptools calls these.

    def on_headers_complete(self) -> None:
        # The parser forgets it with the end of the answer.
        self._is_last = not self._parser.should_keep_alive()

    def on_body(self, part: bytes) -> None:
        self._parts.append(part)

    def on_message_complete(self) -> None:
        self._is_complete = True


@contextlib.contextmanager
def connected(
    host: str,
    port: int,
    request: Callable[[bytes], bytes],
    timeout_seconds: float,
    tls: ssl.SSLContext | None = None,
) -> Iterator[Exchange]:
    """Opens a connection; gives the function that sends a request.

    Args:
        host: name or address of the server.
        port: the server's.
        request: returns the bytes of a request with a body.
        timeout_seconds: time of each wait for the network.
        tls: None connects without TLS.

    Raises:
        BenchmarkError: in the block, if a request is refused, timed out, or answered with another
            status than 200.
    """
    connection = _Connection(host, port, timeout_seconds, tls)

    def exchange(body: bytes) -> bytes:
        status, answer = connection.exchange(request(body))
        if status != _OK:
            text = answer.decode("utf-8", "replace")[:_LONGEST_MESSAGE_CHARACTERS]
            raise BenchmarkError(f"a request was answered with {status}: {text}")
        return answer

    try:
        connection.open()
        yield exchange
    except (OSError, httptools.HttpParserError) as error:
        raise BenchmarkError(f"a request failed: {type(error).__name__}: {error}") from None
    finally:
        connection.close()


def connected_to(port: int, timeout_seconds: float) -> contextlib.AbstractContextManager[Exchange]:
    """Opens a connection to /invocations of a server on the loopback interface."""
    head = f"POST /invocations HTTP/1.1\r\nHost: {_HOST}:{port}\r\nContent-Type: application/json"

    def request(body: bytes) -> bytes:
        return f"{head}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body

    return connected(_HOST, port, request, timeout_seconds)
