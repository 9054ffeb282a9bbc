"""The line that the tests of killed programs put between a client and the embedded AWS."""

import asyncio
import contextlib
import socket
import threading

import pytest

from tests.embedded.faults.line import Line

_HOST = "127.0.0.1"


@pytest.fixture
def server() -> socket.socket:
    listening = socket.create_server((_HOST, 0))
    listening.settimeout(10)
    return listening


def received(server: socket.socket) -> bytes:
    """Returns what the next connection to the server brings until it ends."""
    connection, _ = server.accept()
    with connection:
        connection.settimeout(10)
        content = b""
        with contextlib.suppress(ConnectionResetError):
            while chunk := connection.recv(65_536):
                content += chunk
        return content


def send(port: int, content: bytes) -> None:
    with socket.create_connection((_HOST, port)) as client:
        client.sendall(content)


def test_a_connection_passes_before_and_after_a_cut(server: socket.socket) -> None:
    with server, Line(server.getsockname()[1]) as line:
        send(line.port, b"before")
        assert received(server) == b"before"
        line.cut()
        send(line.port, b"after")
        assert received(server) == b"after"


def test_a_cut_drops_a_connection_that_was_not_accepted_yet(server: socket.socket) -> None:
    """A client that dies leaves what it has sent in the line's queue; a cut takes that too."""
    with server, Line(server.getsockname()[1]) as line:
        # Its thread is busy: the connection waits in the kernel's queue until the cut is due too.
        busy = threading.Event()
        loop = line._loop
        loop.call_soon_threadsafe(busy.wait)
        send(line.port, b"of a killed client")
        cut = asyncio.run_coroutine_threadsafe(line._cut(), loop)
        busy.set()
        cut.result(10)
        send(line.port, b"of the next one")
        while (content := received(server)) != b"of the next one":
            assert content == b""
