"""The tunnel between two ends in one process, joined by pipes; its far side is a real server."""

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from slipway.embedded_aws.containers.tunnel import Tunnel

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@contextlib.asynccontextmanager
async def listening(handler: Handler) -> AsyncIterator[int]:
    server = await asyncio.start_server(handler, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def joined() -> tuple[Streams, Streams]:
    """Two ends of one connection, in place of the pipes to a container."""
    ends: asyncio.Queue[Streams] = asyncio.Queue()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await ends.put((reader, writer))

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    near = await asyncio.open_connection(*server.sockets[0].getsockname())
    far = await ends.get()
    server.close()
    return near, far


@contextlib.asynccontextmanager
async def tunnelled(port: int) -> AsyncIterator[int]:
    """Yields a port from which a tunnel leads to another port."""
    (near, far) = await joined()
    here = Tunnel(*near)
    there = Tunnel(*far, connect=lambda: asyncio.open_connection("127.0.0.1", port))
    running = [asyncio.create_task(each.run()) for each in (here, there)]
    async with listening(here.carry) as entrance:
        yield entrance
        near[1].close()
        far[1].close()
        await asyncio.gather(*running)


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(1 << 16):
        writer.write(data)
        await writer.drain()
    writer.close()


async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answers one line with more than the tunnel, and both sockets, can hold."""
    await reader.readline()
    with contextlib.suppress(OSError):
        for _ in range(256):
            writer.write(b"x" * (1 << 18))
            await writer.drain()
    writer.close()


def within_seconds(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    @functools.wraps(test)
    def run(**fixtures: Any) -> None:
        asyncio.run(asyncio.wait_for(test(**fixtures), 30))

    return run


@within_seconds
async def test_bytes_arrive_whole_and_in_order() -> None:
    sent = bytes(range(256)) * 40_000  # ten times a connection's window

    async def ask(port: int) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writing = asyncio.create_task(_write(writer, sent))
        received = await reader.readexactly(len(sent))
        await writing
        writer.close()
        return received

    async with listening(echo) as port, tunnelled(port) as entrance:
        received = await asyncio.gather(*(ask(entrance) for _ in range(3)))
    assert received == [sent] * 3


@within_seconds
async def test_a_client_that_does_not_read_delays_no_other() -> None:
    async with listening(flood) as slow, tunnelled(slow) as entrance:
        _, stuck = await asyncio.open_connection("127.0.0.1", entrance)
        stuck.write(b"go\n")
        # Another connection of the same tunnel gets all of its answer meanwhile.
        reader, writer = await asyncio.open_connection("127.0.0.1", entrance)
        writer.write(b"go\n")
        assert len(await reader.read(-1)) == 256 << 18
        writer.close()
        stuck.close()


@pytest.mark.parametrize("ends_first", ["client", "server"])
@within_seconds
async def test_an_end_of_either_side_reaches_the_other(ends_first: str) -> None:
    ended = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if ends_first == "server":
            writer.write(b"last words")
            writer.close()
        assert await reader.read(1) == b""
        ended.set()
        writer.close()

    async with listening(serve) as port, tunnelled(port) as entrance:
        reader, writer = await asyncio.open_connection("127.0.0.1", entrance)
        if ends_first == "server":
            assert await reader.read(-1) == b"last words"
        writer.close()
        await ended.wait()


@within_seconds
async def test_a_port_on_which_nothing_listens_ends_the_connection() -> None:
    async with listening(echo) as port:
        pass
    async with tunnelled(port) as entrance:
        reader, writer = await asyncio.open_connection("127.0.0.1", entrance)
        assert await reader.read(1) == b""
        writer.close()


@within_seconds
async def test_connections_end_with_the_tunnel() -> None:
    async with listening(echo) as port, tunnelled(port) as entrance:
        reader, writer = await asyncio.open_connection("127.0.0.1", entrance)
        writer.write(b"before")
        assert await reader.readexactly(6) == b"before"
    assert await reader.read(1) == b""
    writer.close()


async def _write(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(data)
    await writer.drain()


@within_seconds
async def test_a_connection_ends_in_silence_if_the_other_end_is_gone() -> None:
    near, far = await joined()
    far[1].transport.abort()
    here = Tunnel(*near)
    await here.run()
    unhandled: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, found: unhandled.append(found))
    async with listening(here.carry) as entrance:
        # The first frame may still find room on the way.
        for _ in range(3):
            reader, writer = await asyncio.open_connection("127.0.0.1", entrance)
            with contextlib.suppress(ConnectionError):
                assert await reader.read() == b""
            writer.close()
    assert unhandled == []
