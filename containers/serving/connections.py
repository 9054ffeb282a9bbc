"""Connections with limits, so that a slow, silent or endless client cannot hold one for ever.

uvicorn closes only a connection that is idle after an answer. These connections limit further
times. A client must send its first request in time, and the rest of a request's headers, or of a
body that was answered already. It must also read in time what was sent to it. The request's own
time-out applies to a body that the server waits for. The headers and the trailers of a request
have a limited size. Of the requests that are sent ahead of an answer, only a few are parsed. A
parsed request takes up to a hundred times the memory of its bytes.

A request can also ask its connection to cancel it when the client leaves.
"""

import asyncio
import contextlib
from collections.abc import Callable, Generator, Mapping
from typing import TYPE_CHECKING, Any, Final, cast

import httptools
from starlette.requests import ClientDisconnect
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from containers.serving.errors import error_body
from containers.serving.joined_writes import JoinedWrites
from containers.serving.logs import log_info

if TYPE_CHECKING:
    # Triton's guard has these connections, and no service.
    from containers.serving.service import InferenceService

# Request headers usually come in one or two packets.
HEADERS_TIMEOUT_SECONDS: Final = 10.0
# As long as SageMaker waits for an answer.
STALLED_ANSWER_SECONDS: Final = 60.0
# Of headers, or of the trailers of a body. Proxies allow 8 to 64 KiB.
_MAX_HEADER_BYTES: Final = 64 * 1024
# A parser cannot stop inside what it was given, and this much may be 57 requests.
_PIECE_BYTES: Final = 1024

# Of a connection that came while there were too many.
_SPARE_SECONDS: Final = 5.0
_REFUSAL_SECONDS: Final = 1.0
_PING: Final = b"GET /ping "
_REFUSAL: Final = b"503 Service Unavailable\r\nretry-after: 1"
_REFUSAL_BODY: Final = error_body(
    "overloaded", "The server has as many requests as it can answer in time; retry later."
)

# Of a status, the body's length, and the body.
_LAST_ANSWER: Final = (
    b"HTTP/1.1 %s\r\ncontent-type: application/json\r\ncontent-length: %d\r\n"
    b"connection: close\r\n\r\n%s"
)
_HEADERS_TIMED_OUT: Final = "headers_timed_out"
_ANSWER_NOT_TAKEN: Final = "answer_not_taken"
_NOT_HTTP: Final = "Invalid HTTP request received."
# The key of the connection among a scope's extensions.
_EXTENSION: Final = "slipway.connection"


class BoundedConnection(HttpToolsProtocol):
    """uvicorn's HTTP/1.1 connection with a limit on every wait for the client."""

    # Any: uvicorn's own parameters, passed on.
    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        # By the event that is logged when the time is over.
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._is_receiving = False
        # What waits for the answers to the requests before it.
        self._unparsed = memoryview(b"")
        self._is_refused = False
        # Bytes that were parsed since the last part of a request was complete.
        self._header_bytes = 0
        # Missing bytes of a body whose length is known.
        self._body_bytes = 0
        self._has_headers = False
        # Whether the client said that no request will follow the last one.
        self._is_last_request = False
        self.is_lost = False
        self.when_lost: set[Callable[[], None]] = set()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # uvicorn's own
        super().connection_made(cast(asyncio.Transport, JoinedWrites(transport, self.loop)))
        self.flow = _Flow(self.transport, self._may_read)
        self._wait_for_request()

    def data_received(self, data: bytes) -> None:
        """Parses what arrived, unless requests before it wait for their answers."""
        self._unparsed = memoryview(bytes(self._unparsed) + data if self._unparsed else data)
        self._parse_received()

    def eof_received(self) -> bool:  # type: ignore[override]  # as asyncio has it
        """Returns whether the connection stays open for an answer, though the client sends no more.

        A client that closed its connection looks the same, and its request should cost no compute.
        So an answer is owed only to a client that announced the end, with `Connection: close` or as
        HTTP/1.0 does.
        """
        return self._is_last_request and not self._is_receiving and self._is_answering()

    def connection_lost(self, exc: Exception | None) -> None:
        for event in list(self._timers):
            self._stop_timer(event)
        self._unparsed = memoryview(b"")
        super().connection_lost(exc)
        self.is_lost = True
        for tell in list(self.when_lost):
            tell()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stop_timer(_ANSWER_NOT_TAKEN)
        self._start_timer(STALLED_ANSWER_SECONDS, _ANSWER_NOT_TAKEN)

    def resume_writing(self) -> None:
        self._stop_timer(_ANSWER_NOT_TAKEN)
        super().resume_writing()

    def on_message_begin(self) -> None:
        # Not for any data: line ends between two requests are no request, and buy no time.
        self._unset_keepalive_if_required()
        super().on_message_begin()
        self.scope["extensions"] = {_EXTENSION: self}  # type: ignore[dict-item]  # any value
        self._is_receiving, self._has_headers, self._header_bytes = True, False, 0

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keeps a header; trailers are dropped, because nobody reads them."""
        if not self._has_headers:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._has_headers, self._header_bytes = True, 0
        # An answer to the request before it may have set the timer since this one began.
        self._unset_keepalive_if_required()
        self._body_bytes = int(dict(self.headers).get(b"content-length", 0))
        self._is_last_request = not self.parser.should_keep_alive()
        if not self.parser.should_upgrade():
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._body_bytes -= len(body)
        self._header_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._header_bytes = 0
        if not self.parser.should_upgrade():
            self._is_receiving = False
            super().on_message_complete()
            if not self._is_answering():  # this is the rest of an answered request
                self._wait_for_request()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._unparsed:
            self._parse_received()

    def send_400_response(self, msg: str) -> None:
        """Answers data that is not HTTP with the JSON body that every error has."""
        body = error_body("invalid_request", msg)
        self.transport.write(_LAST_ANSWER % (b"400 Bad Request", len(body), body))
        self.transport.close()

    def timeout_keep_alive_handler(self) -> None:
        """Closes an idle connection, even if the client has not read all of an answer."""
        if self.transport.get_write_buffer_size():
            self._give_up(_ANSWER_NOT_TAKEN)
        else:
            super().timeout_keep_alive_handler()

    def _parse_received(self) -> None:
        """Parses until a request has to wait, and starts a timeout for a request's missing rest."""
        while self._unparsed and self._may_read():
            size = max(_PIECE_BYTES, self._body_bytes)
            piece, self._unparsed = self._unparsed[:size], self._unparsed[size:]
            self._parse(piece)
        if self.transport.is_closing():
            self._unparsed = memoryview(b"")
        if self._unparsed:
            self.flow.pause_reading()
        if self.transport.is_closing() or self._is_answering() or not self._is_receiving:
            self._stop_timer(_HEADERS_TIMED_OUT)
        elif _HEADERS_TIMED_OUT not in self._timers:
            self._start_timer(HEADERS_TIMEOUT_SECONDS, _HEADERS_TIMED_OUT)

    def _may_read(self) -> bool:
        return not (self.pipeline or self._is_refused or self.transport.is_closing())

    def _parse(self, piece: memoryview) -> None:
        self._header_bytes += len(piece)
        try:
            self.parser.feed_data(piece)
        except httptools.HttpParserUpgrade as offer:
            if self.parser.get_method() == b"CONNECT":
                self._refuse()
            else:
                rest = bytes(piece[offer.args[0] :]) + bytes(self._unparsed)
                self._unparsed = memoryview(self._without_offer() + rest)
        except httptools.HttpParserError:
            self._refuse()
        else:
            if self._header_bytes > _MAX_HEADER_BYTES:
                self._refuse()

    def _without_offer(self) -> bytes:
        """Returns the headers of the current request without its offer of another protocol.

        A server may ignore the offer (RFC 9110, 7.8). The parser does not, and takes the request's
        body for data of that protocol. A new parser therefore reads the request again.
        """
        method, version = self.parser.get_method(), self.parser.get_http_version().encode()
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn does
        kept = [b"%s: %s" % header for header in self.headers if header[0] != b"upgrade"]
        first = b"%s %s HTTP/%s" % (method, self.url, version)
        return b"\r\n".join([first, *kept, b"", b""])

    def _refuse(self) -> None:
        """Ends a connection whose data is not HTTP, after the answers to what came before it."""
        self._is_refused, self._unparsed = True, memoryview(b"")
        if self._is_answering() and not self.cycle.more_body:
            self.cycle.keep_alive = False
            self.flow.pause_reading()
        elif self._is_answering() and (self.pipeline or self.cycle.response_started):
            self.transport.close()
        else:
            self.send_400_response(_NOT_HTTP)

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _wait_for_request(self) -> None:
        self._unset_keepalive_if_required()
        self.timeout_keep_alive_task = self.loop.call_later(
            self.timeout_keep_alive, self.timeout_keep_alive_handler
        )

    def _give_up(self, event: str) -> None:
        log_info(event)
        # Not `close`, which waits until the client has read what was sent.
        self.transport.abort()

    def _start_timer(self, seconds: float, event: str) -> None:
        self._timers[event] = self.loop.call_later(seconds, self._give_up, event)

    def _stop_timer(self, event: str) -> None:
        if timer := self._timers.pop(event, None):
            timer.cancel()


class SpareConnection(asyncio.Protocol):
    """A connection that came while there were too many: it answers /ping, and refuses the rest.

    It takes no task and no parser. A refusal waits for a second, so that clients that come back at
    once leave the processor to the model. If there is room when the first request comes, the
    connection is served like any other.
    """

    def __init__(
        self, service: "InferenceService", served: Callable[[], asyncio.Protocol | None]
    ) -> None:
        self._service, self._served = service, served
        self._loop = asyncio.get_running_loop()
        self._received = b""
        self._is_answered = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as asyncio has it
        self._transport = transport
        self._end = self._loop.call_later(_SPARE_SECONDS, transport.abort)

    def data_received(self, data: bytes) -> None:
        if self._is_answered:
            return
        self._received += data
        if self._received.startswith(_PING):
            self._answer(b"200 OK" if self._service.is_ready else b"503 Service Unavailable", b"")
        elif _PING.startswith(self._received):
            return
        elif served := self._served():
            self._end.cancel()
            self._transport.set_protocol(served)
            served.connection_made(self._transport)
            served.data_received(self._received)
        else:
            self._is_answered = True
            self._service.refusals.count()
            self._loop.call_later(_REFUSAL_SECONDS, self._answer, _REFUSAL, _REFUSAL_BODY)
        self._received = b""

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  (asyncio's)
        self._end.cancel()

    def _answer(self, status: bytes, body: bytes) -> None:
        self._is_answered = True
        if self._transport.is_closing():
            return
        self._transport.write(_LAST_ANSWER % (status, len(body), body))
        # Closed while the client sends, the connection would be reset, and the answer lost.
        self._transport.write_eof()


# Any: uvicorn's own parameters, passed on.
def connections_up_to(most: int, service: "InferenceService") -> Callable[..., asyncio.Protocol]:
    """Returns what makes the connections of a server.

    Beyond the most connections, and while nearly all requests are refused, a new connection is a
    `SpareConnection`.
    """

    def connection(*arguments: Any, **keywords: Any) -> asyncio.Protocol:
        def served() -> BoundedConnection | None:
            if service.is_flooded() or len(keywords["server_state"].connections) >= most:
                return None
            return BoundedConnection(*arguments, **keywords)

        return served() or SpareConnection(service, served)

    return connection


class _Flow(FlowControl):
    """uvicorn's flow control, which reads on only while `may_read` says that data can be used."""

    def __init__(self, transport: asyncio.Transport, may_read: Callable[[], bool]) -> None:
        super().__init__(transport)
        self._may_read = may_read

    def resume_reading(self) -> None:
        if self._may_read():
            super().resume_reading()


# Any: ASGI's own type.
@contextlib.contextmanager
def cancelled_without_client(scope: Mapping[str, Any]) -> Generator[None, None, None]:
    """Cancels the current task's work in the context when the client closes its connection.

    Then it raises `ClientDisconnect`. Servers of other kinds than `BoundedConnection` do not tell,
    so that nothing is cancelled there.
    """
    connection = (scope.get("extensions") or {}).get(_EXTENSION)
    task = asyncio.current_task()
    if connection is None or task is None:
        yield
        return
    if connection.is_lost:
        raise ClientDisconnect
    has_left = False

    def cancel() -> None:
        nonlocal has_left
        has_left = True
        task.cancel()

    connection.when_lost.add(cancel)
    try:
        yield
    except asyncio.CancelledError:
        if has_left and not task.uncancel():
            raise ClientDisconnect from None
        raise
    finally:
        connection.when_lost.discard(cancel)
