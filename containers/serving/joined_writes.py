"""A transport that sends what is written in one turn of the event loop as one packet.

uvicorn writes the headers and the body of an answer one after the other. Two packets cost the
server and its client one more system call each, and the client is woken twice.
"""

import asyncio
from typing import Any, Final

# A large body is sent at once, so that the transport's own limits apply to it.
_MOST_JOINED_BYTES: Final = 64 * 1024


class JoinedWrites:
    """Joins small writes to a transport, and passes on everything else."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0

    # Any: the other methods of a transport.
    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Sends data at the end of this turn of the event loop, or at once if there is much."""
        if not self._waiting:
            self._loop.call_soon(self._send)
        self._waiting.append(data)
        self._waiting_bytes += len(data)
        if self._waiting_bytes > _MOST_JOINED_BYTES:
            self._send()

    def close(self) -> None:
        self._send()
        self._transport.close()

    def abort(self) -> None:
        self._waiting.clear()
        self._waiting_bytes = 0
        self._transport.abort()

    def get_write_buffer_size(self) -> int:
        return self._waiting_bytes + self._transport.get_write_buffer_size()

    def _send(self) -> None:
        data = b"".join(self._waiting)
        self._waiting.clear()
        self._waiting_bytes = 0
        if data and not self._transport.is_closing():
            self._transport.write(data)
