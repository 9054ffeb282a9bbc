"""Carries TCP connections over the standard input and output of a program in a container.

The container has no network, so nothing connects to it from outside. One end of the tunnel is in
`supervisor`, which listens on loopback. The other end is this module as a program, which `docker
exec` runs in the container. Both ends exchange frames: OPEN, DATA, READ and CLOSE, each with the
number of its connection.

An end may send `_WINDOW_BYTES` of a connection before the other end has written them on. A client
that reads slowly therefore delays no other connection.

It uses only the standard library and keeps to Python 3.10, which some images have.
"""

import asyncio
import contextlib
import struct
import sys
from collections.abc import Awaitable, Callable

_HEADER = struct.Struct("!BII")
_OPEN, _DATA, _READ, _CLOSE = range(4)
_WINDOW_BYTES = 1 << 20
_READ_BYTES = 1 << 16

# Makes the connection that an OPEN of the other end asks for.
Connect = Callable[[], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]


class _Connection:
    """One connection in the tunnel: what arrived for it, and how much may be sent."""

    def __init__(self) -> None:
        # Ends with None once the other end has closed the connection.
        self.arrived: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._may_send = _WINDOW_BYTES
        self._changed = asyncio.Event()

    def was_read(self, count: int) -> None:
        self._may_send += count
        self._changed.set()

    async def reserve(self) -> int:
        """Waits until something may be sent; returns how many bytes."""
        while self._may_send <= 0:
            self._changed.clear()
            await self._changed.wait()
        return min(self._may_send, _READ_BYTES)

    def was_sent(self, count: int) -> None:
        self._may_send -= count


class Tunnel:
    """One end.

    Args:
        reader: frames of the other end.
        writer: frames to the other end.
        connect: makes a connection that the other end opens; None where only this end opens.
    """

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        connect: Connect | None = None,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._connect = connect
        self._connections: dict[int, _Connection] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._opened = 0
        self._is_gone = False
        self._writing = asyncio.Lock()

    async def run(self) -> None:
        """Reads frames until the other end is gone; then every connection ends."""
        try:
            while True:
                header = await self._reader.readexactly(_HEADER.size)
                kind, number, value = _HEADER.unpack(header)
                await self._handle(kind, number, value)
        except (asyncio.IncompleteReadError, OSError):
            pass  # the other end is gone
        finally:
            self._is_gone = True
            for connection in self._connections.values():
                connection.arrived.put_nowait(None)
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Opens a connection at the other end and carries it until either end closes it."""
        self._opened += 1
        number = self._opened
        connection = self._connections[number] = _Connection()
        with contextlib.suppress(OSError):  # `_copy` finds out that the other end is gone
            await self._send(_OPEN, number)
        if self._is_gone:
            connection.arrived.put_nowait(None)
        await self._copy(number, reader, writer)

    async def _handle(self, kind: int, number: int, value: int) -> None:
        data = await self._reader.readexactly(value) if kind == _DATA else b""
        if kind == _OPEN and self._connect is not None:
            self._connections[number] = _Connection()
            task = asyncio.create_task(self._answer(number, self._connect))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        # A frame may be under way to a connection that this end has closed.
        elif (connection := self._connections.get(number)) is None:
            return
        elif kind == _DATA:
            connection.arrived.put_nowait(data)
        elif kind == _READ:
            connection.was_read(value)
        elif kind == _CLOSE:
            connection.arrived.put_nowait(None)

    async def _answer(self, number: int, connect: Connect) -> None:
        try:
            reader, writer = await connect()
        except OSError:
            # Nothing listens yet.
            del self._connections[number]
            await self._send(_CLOSE, number)
            return
        await self._copy(number, reader, writer)

    async def _copy(
        self, number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        connection = self._connections[number]
        copies = {
            asyncio.create_task(self._outwards(number, connection, reader)),
            asyncio.create_task(self._inwards(number, connection, writer)),
        }
        try:
            await asyncio.wait(copies, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for copy in copies:
                copy.cancel()
            await asyncio.gather(*copies, return_exceptions=True)
            del self._connections[number]
            with contextlib.suppress(OSError):
                await self._send(_CLOSE, number)
            writer.close()

    async def _outwards(
        self, number: int, connection: _Connection, reader: asyncio.StreamReader
    ) -> None:
        while data := await reader.read(await connection.reserve()):
            connection.was_sent(len(data))
            await self._send(_DATA, number, data)

    async def _inwards(
        self, number: int, connection: _Connection, writer: asyncio.StreamWriter
    ) -> None:
        while (data := await connection.arrived.get()) is not None:
            writer.write(data)
            await writer.drain()
            await self._send(_READ, number, value=len(data))

    async def _send(self, kind: int, number: int, data: bytes = b"", value: int = 0) -> None:
        # One task at a time waits for room: in Python 3.10 a writer allows no more.
        async with self._writing:
            self._writer.write(_HEADER.pack(kind, number, len(data) or value) + data)
            await self._writer.drain()


async def open_pipes() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    transport, protocol = await loop.connect_write_pipe(
        asyncio.streams.FlowControlMixin, sys.stdout
    )
    return reader, asyncio.StreamWriter(transport, protocol, None, loop)


async def _serve(port: int) -> None:
    """Runs the container's end until its standard input ends."""
    reader, writer = await open_pipes()
    await Tunnel(reader, writer, lambda: asyncio.open_connection("127.0.0.1", port)).run()


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1])))
