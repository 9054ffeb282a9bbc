"""One container under a supervisor: start, output line by line, exit, stop."""

import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

_SUPERVISOR = Path(__file__).with_name("supervisor.py")
_KEPT_LINES = 20
# How long output may still arrive after the program has ended; a stray descendant can hold the pipe
# open for ever.
_OUTPUT_GRACE_SECONDS = 2.0


class SupervisedProcess:
    """A program or container, under a supervisor that ends it when its standard input ends.

    Args:
        command: the supervisor and its arguments.
        environment: the whole environment of the supervisor.
        on_line: called with every line of output (no line end), from a thread of this object.

    Attributes:
        exited: set when the program has ended and its output was read.
    """

    def __init__(
        self,
        *,
        command: Sequence[str],
        environment: Mapping[str, str],
        directory: Path,
        on_line: Callable[[str], None],
    ) -> None:
        self.exited = threading.Event()
        self._on_line = on_line
        self._last_lines: deque[str] = deque(maxlen=_KEPT_LINES)
        self._stopping = threading.Lock()
        # A new session, because Ctrl-C in the server's terminal is meant for the server.
        self._popen = subprocess.Popen(  # noqa: S603  # the command comes from the program table
            list(command),
            env=dict(environment),
            cwd=directory,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, name="container-output", daemon=True)
        self._reader.start()
        threading.Thread(target=self._wait, name="container-exit", daemon=True).start()

    @property
    def last_lines(self) -> list[str]:
        return list(self._last_lines)

    @property
    def exit_status(self) -> int | None:
        """Returns the program's exit status (128 + N for signal N); None while it runs."""
        return self._popen.returncode if self.exited.is_set() else None

    @property
    def ancestor_id(self) -> int | None:
        """Returns the process whose descendants are the program's; None if it is not known."""
        return self._popen.pid

    def request_stop(self) -> None:
        """Begins to stop the program; `exited` is set when it has ended."""
        with self._stopping:
            if self._popen.stdin is not None and not self._popen.stdin.closed:
                self._popen.stdin.close()

    def kill(self) -> None:
        """Kills the program and its descendants at once; `exited` is set when they have ended."""
        if self._popen.poll() is None:
            self._popen.send_signal(signal.SIGUSR1)

    def stop(self) -> None:
        self.request_stop()
        self.exited.wait()

    def _read(self) -> None:
        output = self._popen.stdout
        if output is None:
            raise TypeError("the program was started without a pipe for its output")
        with output:
            for raw in output:
                line = raw.decode(errors="replace").rstrip("\r\n")
                self._last_lines.append(line)
                self._on_line(line)

    def _wait(self) -> None:
        self._popen.wait()
        self._reader.join(_OUTPUT_GRACE_SECONDS)
        self.request_stop()  # closes the other end of the pipe when the program ended by itself
        self.exited.set()


def start_program(
    *,
    command: Sequence[str],
    environment: Mapping[str, str],
    directory: Path,
    on_line: Callable[[str], None],
    grace_seconds: float,
) -> SupervisedProcess:
    """Starts a program under `supervisor`, with the whole environment of the program.

    `on_line` is called with every line of output (no line end), from another thread. The grace is
    the time from SIGTERM to SIGKILL when it is stopped.
    """
    # -I, because PYTHONPATH and similar variables are the container's, not the supervisor's.
    supervisor = [sys.executable, "-I", "-S", str(_SUPERVISOR), str(grace_seconds)]
    return SupervisedProcess(
        command=[*supervisor, *command],
        environment=environment,
        directory=directory,
        on_line=on_line,
    )
