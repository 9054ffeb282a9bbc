"""Serves the pages on the loopback device until Ctrl-C."""

import contextlib
import secrets
import socket
import tempfile
import webbrowser
from collections.abc import Callable, Iterator
from pathlib import Path

import uvicorn

from slipway.codes.code import Code
from slipway.errors import UserError
from slipway.ui.app import Wording, make_app
from slipway.ui.guard import LOOPBACK
from slipway.ui.looks import Looks


def serve(
    looks: Looks, wording: Wording, port: int, show: Callable[[str], None], *, is_opened: bool
) -> None:
    """Serves until Ctrl-C; raises `UserError` if the port is taken, where 0 is any free one.

    `show` is told the address, which has the token. With `is_opened` the user's browser opens it.
    """
    with listening(port) as listener, contextlib.ExitStack() as stack:
        own_port = listener.getsockname()[1]
        token = secrets.token_urlsafe(32)
        app = make_app(looks, wording, token, own_port)
        address = f"http://{LOOPBACK}:{own_port}/?token={token}"
        # Graceful: a browser keeps its connections open.
        config = uvicorn.Config(
            app, log_level="warning", lifespan="off", ws="none", timeout_graceful_shutdown=1
        )
        show(address)
        if is_opened:
            webbrowser.open(stack.enter_context(_leading_file(address)).as_uri())
        with contextlib.suppress(KeyboardInterrupt):
            uvicorn.Server(config).run(sockets=[listener])


@contextlib.contextmanager
def listening(port: int) -> Iterator[socket.socket]:
    """Gives a socket on the loopback device; raises `UserError` if its port is taken."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((LOOPBACK, port))
        except OSError as error:
            raise UserError.of(
                Code.WRONG_OPTIONS,
                f"`slipway ui` cannot listen on port {port}: {error.strerror}",
                "Name another `--port`, or leave it out for a free one.",
            ) from None
        listener.listen()
        yield listener


@contextlib.contextmanager
def _leading_file(address: str) -> Iterator[Path]:
    """Gives a file that leads to the address: other users see a browser's arguments."""
    with tempfile.TemporaryDirectory(prefix="slipway-ui-") as folder:
        path = Path(folder) / "open.html"
        path.write_text(f'<meta http-equiv="refresh" content="0; url={address}">', "utf-8")
        yield path
