"""Runs Triton, and ends it when a copy of the model is lost.

Triton starts a process for each copy and does not start a lost one again. It answers that copy's
share of the requests with 500, and /ping with 200. The container therefore ends with the first
lost copy, and SageMaker starts another container.

A copy tells that it lives by a connection to a socket, which its kernel closes when it dies. The
socket is in Linux's abstract namespace, so it has no file and no limit of a path's length.

This module keeps to Python 3.10.
"""

import os
import selectors
import signal
import socket
import struct
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from containers.serving.exit_codes import EXIT_OPERATOR_PROBLEM
from containers.serving.logs import log_error, log_info

if TYPE_CHECKING:
    # A copy of the model imports this module, and has no server's packages.
    from containers.triton.guard import Guard

# The answers that the other copies compute are out by then. With a lost copy, the server itself
# would wait for the whole of its argument `exit-timeout-secs`.
_DRAIN_SECONDS: Final = 2
_SERVER_ENDS_SECONDS: Final = 0.5


def address(process_id: int) -> str:
    return f"\0slipway-triton-{process_id}"


def hold_connection(name: str) -> socket.socket:
    """Connects a copy of the model; it keeps the connection as long as it lives.

    `name` is the result of `address`, without its first character.
    """
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect(f"\0{name}")
    return connection


def run(command: Sequence[str], environment: Mapping[str, str], guard: "Guard") -> int:
    """Runs the server until it ends; returns the container's exit code.

    It is the server's own, or 1 after the loss of a copy. After SIGTERM or SIGINT the guard answers
    what is in flight, and then the server ends. Raises `OSError` if the program cannot be run.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(address(os.getpid()))
        listener.listen()
        server = subprocess.Popen(list(command), env=dict(environment))  # noqa: S603  (no shell)
        ending, ended, lost = threading.Event(), threading.Event(), threading.Event()

        def end(_number: int, _frame: object) -> None:
            ending.set()
            guard.stop()

        def serve() -> None:
            try:
                guard.run()
            finally:
                # After the last answer, or if the guard fails: nothing reaches the server then.
                server.terminate()

        def lose() -> None:
            # A server that ends takes its copies with it: then none of them is lost alone.
            if not ending.is_set() and not ended.wait(_SERVER_ENDS_SECONDS):
                ending.set()
                lost.set()
                log_error(
                    "model_process_lost",
                    message="a copy of the model ended; the server is stopped, so that SageMaker "
                    "starts the container again",
                )
                server.terminate()
                threading.Timer(_DRAIN_SECONDS, server.kill).start()

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, end)
        threading.Thread(target=_watch, args=(listener, lose), daemon=True).start()
        threading.Thread(target=serve, daemon=True).start()
        status = server.wait()
        ended.set()
    log_info("server_ended", status=status)
    # A negative status is a signal's number. 128 and the number is a shell's way to say it.
    return EXIT_OPERATOR_PROBLEM if lost.is_set() else status if status >= 0 else 128 - status


def _is_of_this_user(connection: socket.socket) -> bool:
    """Tells whether a process of this user connected: every user can reach an abstract socket."""
    peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    _process, user, _group = struct.unpack("3i", peer)
    return bool(user == os.getuid())


def _watch(listener: socket.socket, lose: Callable[[], None]) -> None:
    """Calls `lose` when a connection ends."""
    with selectors.DefaultSelector() as selector:
        selector.register(listener, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                # Any: typeshed does not say which kind of object was registered.
                ready: Any = key.fileobj
                if ready is listener:
                    connection, _ = listener.accept()
                    if _is_of_this_user(connection):
                        selector.register(connection, selectors.EVENT_READ)
                    else:
                        connection.close()
                else:
                    selector.unregister(ready)
                    ready.close()
                    lose()
