"""A transport that sends what is written in one turn of the event loop as one packet.

uvicorn writes the headers and the body of an answer one after the other. Two packets cost the
server and its client one more system call each, and the client is woken twice.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, Final

# A large body is sent at once, so that the transport's own limits apply to it.
_MOST_JOINED_BYTES: Final = 64 * 1024


class JoinedWrites(asyncio.Transport):
    """Joins small writes to another transport, and passes on everything else.

    Args:
        transport: sends.
        loop: runs the transport.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._transport = transport
        self._loop = loop
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0

    # Any: asyncio's own type.
    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Returns what the other transport knows of the connection."""
        return self._transport.get_extra_info(name, default)

    def is_closing(self) -> bool:
        """Returns whether the connection is closing, or closed."""
        return self._transport.is_closing()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Sends data at the end of this turn of the event loop, or at once if there is much."""
        if not self._waiting:
            self._loop.call_soon(self._send)
        self._waiting.append(bytes(data))
        self._waiting_bytes += len(data)
        if self._waiting_bytes > _MOST_JOINED_BYTES:
            self._send()

    def writelines(self, list_of_data: Sequence[bytes | bytearray | memoryview]) -> None:  # type: ignore[override]  # narrower
        """Sends several pieces of data, see `write`."""
        for data in list_of_data:
            self.write(data)

    def close(self) -> None:
        """Closes the connection after everything was sent."""
        self._send()
        self._transport.close()

    def abort(self) -> None:
        """Closes the connection at once."""
        self._waiting.clear()
        self._waiting_bytes = 0
        self._transport.abort()

    def pause_reading(self) -> None:
        """Stops reading from the client."""
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Reads from the client again."""
        self._transport.resume_reading()

    def is_reading(self) -> bool:
        """Returns whether the client is read from."""
        return self._transport.is_reading()

    def get_write_buffer_size(self) -> int:
        """Returns how many bytes were written and not sent."""
        return self._waiting_bytes + self._transport.get_write_buffer_size()

    def _send(self) -> None:
        data = b"".join(self._waiting)
        self._waiting.clear()
        self._waiting_bytes = 0
        if data and not self._transport.is_closing():
            self._transport.write(data)
