"""Connections with time limits, so that a slow or silent client cannot hold one for ever.

uvicorn closes only a connection that is idle after an answer. These connections limit further
times. A client must send its first request in time, and the rest of a request's headers, or of a
body that was answered already. It must also read in time what was sent to it. The request's own
time-out applies to a body that the server waits for.
"""

import asyncio
import logging
from typing import Any, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from containers.serving.errors import error_body
from containers.serving.logs import log_event

_logger = logging.getLogger(__name__)

# Request headers usually come in one or two packets.
HEADERS_TIMEOUT_SECONDS: Final = 10.0
# As long as SageMaker waits for an answer.
STALLED_ANSWER_SECONDS: Final = 60.0

_HEADERS_TIMED_OUT: Final = "headers_timed_out"
_ANSWER_NOT_TAKEN: Final = "answer_not_taken"


class BoundedConnection(H11Protocol):
    """uvicorn's HTTP/1.1 connection with a limit on every wait for the client."""

    # Any: uvicorn's own parameters, passed on.
    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        # By the event that is logged when the time is over.
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # uvicorn's own
        """Starts the keep-alive timeout for a new connection."""
        super().connection_made(transport)
        self._wait_for_request()

    def data_received(self, data: bytes) -> None:
        """Starts a timeout for the rest of a partly received request."""
        super().data_received(data)
        if self.transport.is_closing() or self._is_answering():
            self._stop_timer(_HEADERS_TIMED_OUT)
        elif self.conn.trailing_data[0] or self.conn.their_state is h11.SEND_BODY:
            if _HEADERS_TIMED_OUT not in self._timers:
                self._start_timer(HEADERS_TIMEOUT_SECONDS, _HEADERS_TIMED_OUT)
        else:  # the rest of an answered request has arrived
            self._stop_timer(_HEADERS_TIMED_OUT)
            self._wait_for_request()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancels every timer."""
        for event in list(self._timers):
            self._stop_timer(event)
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Starts the timeout for a client that does not read what was sent."""
        super().pause_writing()
        self._stop_timer(_ANSWER_NOT_TAKEN)
        self._start_timer(STALLED_ANSWER_SECONDS, _ANSWER_NOT_TAKEN)

    def resume_writing(self) -> None:
        """Cancels the timeout of `pause_writing`, because the client reads again."""
        self._stop_timer(_ANSWER_NOT_TAKEN)
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        """Answers data that is not HTTP with the JSON body that every error has."""
        body = error_body("invalid_request", msg)
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
        ]
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            for event in (
                h11.Response(status_code=400, headers=headers, reason=b"Bad Request"),
                h11.Data(data=body),
                h11.EndOfMessage(),
            ):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def timeout_keep_alive_handler(self) -> None:
        """Closes an idle connection, even if the client has not read all of an answer."""
        if self.transport.get_write_buffer_size():
            self._give_up(_ANSWER_NOT_TAKEN)
        else:
            super().timeout_keep_alive_handler()

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _wait_for_request(self) -> None:
        self._unset_keepalive_if_required()
        self.timeout_keep_alive_task = self.loop.call_later(
            self.timeout_keep_alive, self.timeout_keep_alive_handler
        )

    def _give_up(self, event: str) -> None:
        log_event(_logger, logging.INFO, event)
        # Not `close`, which waits until the client has read what was sent.
        self.transport.abort()

    def _start_timer(self, seconds: float, event: str) -> None:
        self._timers[event] = self.loop.call_later(seconds, self._give_up, event)

    def _stop_timer(self, event: str) -> None:
        if timer := self._timers.pop(event, None):
            timer.cancel()
