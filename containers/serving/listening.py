"""The socket and the HTTP server that every container has. This module keeps to Python 3.10."""

import asyncio
import contextlib
import socket
from collections.abc import Callable, Generator
from typing import Any, Final

import uvicorn

from containers.serving.connections import BoundedConnection

_BACKLOG_CONNECTIONS: Final = 2048
# Above SageMaker's 60 s for a request, so that the caller closes a kept connection. A caller
# therefore never meets a connection that the server closed at the same moment.
_KEEP_ALIVE_SECONDS: Final = 75


class ListenError(Exception):
    """A port cannot be opened; the message names the port and the reason."""


class HttpServer(uvicorn.Server):
    """uvicorn without its signal handlers, which end the process by the signal they caught.

    `connection` makes the protocol of a connection.
    """

    # Any: an application of ASGI.
    def __init__(
        self,
        app: Any,
        drain_timeout_seconds: int,
        connection: Callable[..., asyncio.Protocol] = BoundedConnection,
    ) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                interface="asgi3",
                # Named, not "auto", so that production runs what the tests run, whatever else is
                # installed.
                http=connection,  # type: ignore[arg-type]  # called only
                loop="asyncio",
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                # Nobody reads the client's address.
                proxy_headers=False,
                server_header=False,
                timeout_keep_alive=_KEEP_ALIVE_SECONDS,
                timeout_graceful_shutdown=drain_timeout_seconds,
            )
        )

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield


def listen(address: str, port: int) -> socket.socket:
    """Returns a listening socket, or raises `ListenError`; port 0 takes any free port."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    # asyncio turns Nagle's algorithm off only if the protocol is named. With it, the last packet of
    # every answer waits for the client's delayed acknowledgement, 40 ms on Linux.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
        listener.listen(_BACKLOG_CONNECTIONS)
    except OSError as error:
        listener.close()
        raise ListenError(f"cannot listen on {address} port {port}: {error.strerror}") from error
    return listener
