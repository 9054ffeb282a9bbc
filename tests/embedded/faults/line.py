"""A line to a server on this machine that can be held at a byte, let go again, or cut.

Killing a client by the clock hits where it hits, and what a loopback connection has taken into its
buffers arrives all the same. Held, nothing moves until the test has done what it came for; cut,
nothing that was under way arrives.
"""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Coroutine
from typing import Any, Self, TypeVar

T = TypeVar("T")

_HOST = "127.0.0.1"
_CHUNK_BYTES = 16_384
_WAIT_SECONDS = 60.0


class Line:
    """Forwards every connection with its `port` to another one. Use as a context manager."""

    def __init__(self, to_port: int) -> None:
        self._to_port = to_port
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="line", daemon=True)
        self._tasks: set[asyncio.Task[Any]] = set()
        self._ends: set[asyncio.StreamWriter] = set()
        self._open = asyncio.Event()
        self._open.set()
        self._held = threading.Event()
        self._passed_bytes = 0
        self._limit_bytes: int | None = None
        self._cuts = 0
        # The client port of the connection that marks a cut: older connections are accepted first.
        self._last_port: int | None = None
        self._last_accepted = asyncio.Event()
        self.port = 0

    def __enter__(self) -> Self:
        self._thread.start()
        self._server = self._run(asyncio.start_server(self._connected, _HOST, 0))
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def __exit__(self, *exception: object) -> None:
        self._run(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def hold_after(self, size_bytes: int) -> None:
        """Holds the line once so many more bytes have passed towards the server."""
        self._held.clear()
        self._passed_bytes, self._limit_bytes = 0, size_bytes

    def wait_held(self) -> None:
        assert self._held.wait(_WAIT_SECONDS), "the line was never held"

    def release(self) -> None:
        """Lets everything pass again, what was held included."""
        self._run(self._release())

    def cut(self) -> None:
        """Drops every connection and what it holds; new ones pass."""
        self._run(self._cut())

    async def _release(self) -> None:
        self._limit_bytes = None
        self._open.set()

    async def _cut(self) -> None:
        # A client that is dead by now may have left a connection in the queue of those to accept.
        # The queue keeps its order: once this connection is accepted, each older one was.
        with socket.socket() as last:
            last.setblocking(False)
            last.bind((_HOST, 0))
            self._last_port = last.getsockname()[1]
            await asyncio.get_running_loop().sock_connect(last, (_HOST, self.port))
            await self._last_accepted.wait()
        self._last_accepted.clear()
        self._cuts += 1
        for end in self._ends:
            end.transport.abort()
        await self._release()
        await asyncio.gather(*self._tasks)

    async def _close(self) -> None:
        await self._cut()
        self._server.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if writer.get_extra_info("peername")[1] == self._last_port:
            self._last_accepted.set()
            writer.close()
            return
        self._tasks.add(task)
        cuts = self._cuts
        to_reader, to_writer = await asyncio.open_connection(_HOST, self._to_port)
        ends = {writer, to_writer}
        self._ends |= ends
        if cuts != self._cuts:
            # The line was cut meanwhile.
            for end in ends:
                end.transport.abort()
        await asyncio.gather(
            self._forward(reader, to_writer, ends, towards_server=True),
            self._forward(to_reader, writer, ends, towards_server=False),
        )
        for end in ends:
            end.close()
            with contextlib.suppress(ConnectionError):
                await end.wait_closed()
        self._ends -= ends
        self._tasks.discard(task)

    async def _forward(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        ends: set[asyncio.StreamWriter],
        *,
        towards_server: bool,
    ) -> None:
        try:
            while chunk := await reader.read(_CHUNK_BYTES):
                if towards_server:
                    self._count(len(chunk))
                await self._open.wait()
                writer.write(chunk)
                await writer.drain()
            writer.write_eof()
        except OSError:
            # One end is gone, or the line is cut: so is the other, without what is under way.
            for end in ends:
                end.transport.abort()

    def _count(self, size_bytes: int) -> None:
        self._passed_bytes += size_bytes
        if self._limit_bytes is not None and self._passed_bytes > self._limit_bytes:
            self._open.clear()
            self._held.set()

    def _run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(_WAIT_SECONDS)
