"""Programs that a benchmark starts, waits for, and stops with all their descendants."""

import contextlib
import http.client
import os
import shlex
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, TypeVar

from benchmarks.errors import BenchmarkError

_POLL_SECONDS = 0.05
_END_SECONDS = 10.0
_SHOWN_LINES = 30
_PING_SECONDS = 60.0

Awaited = TypeVar("Awaited")


# Any: text or bytes, as `options` say.
def start_group(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], **options: Any
) -> subprocess.Popen[Any]:
    """Starts a process in a group of its own; its standard input is empty by default."""
    try:
        return subprocess.Popen(  # noqa: S603  # fixed arguments, no shell
            command,
            cwd=folder,
            env=dict(environment),
            process_group=0,
            **{"stdin": subprocess.DEVNULL, **options},
        )
    except OSError as error:
        raise BenchmarkError(f"`{shlex.join(command)}` cannot be run: {error.strerror}") from None


def kill_group(process: subprocess.Popen[Any]) -> None:
    # macOS refuses if all of them have ended and only the first is left to be collected.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


class BackgroundProcess:
    """A process in a group of its own, whose output goes to `log`; leaving the context stops it."""

    def __init__(
        self, command: Sequence[str], folder: Path, environment: Mapping[str, str], log: Path
    ) -> None:
        self._shown = shlex.join(command)
        self._log = log
        with log.open("wb") as output:
            self._process = start_group(
                command, folder, environment, stdout=output, stderr=subprocess.STDOUT
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def output(self) -> str:
        return self._log.read_text("utf-8", errors="replace")

    def wait_until(
        self,
        ready: Callable[[], Awaited | None],
        limit_seconds: float,
        *,
        poll_seconds: float = _POLL_SECONDS,
    ) -> Awaited:
        """Returns a condition's first true value; stops the process if it never holds."""
        deadline = time.monotonic() + limit_seconds
        try:
            while not (found := ready()):
                code = self._process.poll()
                if code is not None:
                    raise BenchmarkError(
                        f"`{self._shown}` ended with exit code {code}\n{self.recent_output()}"
                    )
                if time.monotonic() > deadline:
                    raise BenchmarkError(
                        f"`{self._shown}` was not ready within {limit_seconds:g} seconds\n"
                        f"{self.recent_output()}"
                    )
                time.sleep(poll_seconds)
        except BaseException:
            self.stop()
            raise
        return found

    def stop(self) -> None:
        """Stops it with SIGTERM, and after some time kills its whole group with SIGKILL."""
        if self._process.poll() is None:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_END_SECONDS)
        kill_group(self._process)
        self._process.wait()

    def recent_output(self) -> str:
        return "\n".join(self.output().splitlines()[-_SHOWN_LINES:])


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def accepts_connections(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def answers_ping(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_PING_SECONDS)
    with contextlib.closing(connection):
        try:
            connection.request("GET", "/ping")
            return connection.getresponse().status == http.HTTPStatus.OK
        except (OSError, http.client.HTTPException):
            return False
