"""The servers of a benchmark, each as the processes that a container would hold."""

import contextlib
import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Generic, Protocol, Self, TypeVar

from benchmarks.baselines.stack import Application, Layout, PublishedStack
from benchmarks.errors import BenchmarkError
from benchmarks.load import LoadResult, LoadSpecification, drive_from_own_process
from benchmarks.processes import BackgroundProcess
from benchmarks.program import ROOT, Say

TIMEOUT_SECONDS = 300
"""For one request, at every server: slow answers are to be measured, not to be refused."""

Key = TypeVar("Key", bound=Hashable)

_START_SECONDS = 300.0
_LEFT_OUT = (
    "BASELINE_",
    "GUNICORN_",
    "HF_",
    "KMP_",
    "MKL_",
    "OMP_",
    "OPENBLAS_",
    "ORT_",
    "PYTHON",
    "SAGEMAKER_",
    "SLIPWAY_",
    "SM_",
    "TORCH",
    "TRANSFORMERS_",
    "WEB_CONCURRENCY",
)


def server_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Returns the user's variables without those that change how a server works."""
    return {name: value for name, value in environ.items() if not name.startswith(_LEFT_OUT)}


def shared_settings(model_directory: Path) -> dict[str, str]:
    """Returns the settings that every container gets, as an endpoint's container would."""
    return {
        "SAGEMAKER_BIND_TO_PORT": "0",
        "SM_MODEL_DIR": str(model_directory),
        "SLIPWAY_REQUEST_TIMEOUT_SECONDS": str(TIMEOUT_SECONDS),
    }


class LoopbackServer(BackgroundProcess):
    """A program in Python that says in its output which port it serves.

    Args:
        arguments: arguments of Python.
        log: file for its output.
        variables: its environment.
        find_port: returns the port once the output has it.

    Raises:
        BenchmarkError: it did not start; the message has its last output.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        log: Path,
        variables: Mapping[str, str],
        find_port: Callable[[str], int | None],
    ) -> None:
        super().__init__((sys.executable, *arguments), ROOT, variables, log)
        self.port = self.wait_until(lambda: find_port(self.output()), _START_SECONDS)


def printed_port(output: str) -> int | None:
    """Returns the port of a program that prints nothing else."""
    return int(output) if output.endswith("\n") else None


def logged_port(output: str) -> int | None:
    """Returns the port from a container's log, once the model is loaded."""
    events: dict[str, dict[str, Any]] = {}
    for line in output.splitlines():
        # A half-written line, or no line of the log.
        with contextlib.suppress(ValueError, KeyError, TypeError):
            fields = json.loads(line)
            events[fields["event"]] = fields
    is_ready = {"listening", "model_loaded"} <= events.keys()
    return int(events["listening"]["port"]) if is_ready else None


class RunningServer(Protocol):
    """A server of a pool."""

    port: int

    def recent_output(self) -> str:
        """Returns the last lines of its output."""

    def stop(self) -> None:
        """Stops it."""


def idle_server(
    log: Path, variables: Mapping[str, str], delay_milliseconds: float = 0.0
) -> LoopbackServer:
    """Starts a server that does nothing, to measure the load driver alone.

    Args:
        log: file for its output.
        variables: its environment.
        delay_milliseconds: time from a request to its answer.
    """
    program = ("-m", "benchmarks.idle_server", "--delay-milliseconds", str(delay_milliseconds))
    return LoopbackServer(program, log, variables, printed_port)


class ServerPool(ABC, Generic[Key]):
    """The servers of one model, each started when it is first needed.

    They all run at the same time, but only one is measured at a time: a waiting server takes no
    processor. Use it as a context: leaving stops them all. The text of a key is the server's title.

    Args:
        folder: an empty folder, for logs and sockets.
        model_directory: the model that they serve.
        environ: the user's variables.
        say: called when a server is started.
    """

    def __init__(
        self, folder: Path, model_directory: Path, environ: Mapping[str, str], say: Say
    ) -> None:
        self._folder, self._model_directory = folder, model_directory
        self._variables = server_variables(environ)
        self._say = say
        self._running: dict[Key, RunningServer] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def port(self, key: Key) -> int:
        """Returns a server's port; starts the server if it does not run yet.

        Raises:
            BenchmarkError: it did not start.
        """
        if key not in self._running:
            self._say(f"starting {key}")
            server = self._start(key)
            self._stack.callback(server.stop)
            self._running[key] = server
        return self._running[key].port

    def drive(self, key: Key, title: str, load: LoadSpecification) -> LoadResult:
        """Drives a load against a server.

        Args:
            key: the server.
            title: name of the measurement, for the error.
            load: the requests.

        Raises:
            BenchmarkError: a request failed; the message has the server's last output.
        """
        port = self.port(key)
        try:
            return drive_from_own_process(port, load)
        except BenchmarkError as error:
            log = self._running[key].recent_output()
            raise BenchmarkError(f"{title}: {error}\n{log}") from None

    @abstractmethod
    def _start(self, key: Key) -> RunningServer:
        """Starts a server."""

    def _start_container(
        self, arguments: Sequence[str], name: str, settings: Mapping[str, str]
    ) -> LoopbackServer:
        """Starts the container's own program, or a program with the same settings and log.

        Args:
            arguments: arguments of Python.
            name: name of its log.
            settings: the variables that an endpoint's container would get.
        """
        variables = {**self._variables, **settings}
        return LoopbackServer(arguments, self._folder / f"{name}.log", variables, logged_port)

    def _start_published(
        self, application: Application, name: str, layout: Layout
    ) -> PublishedStack:
        """Starts nginx and gunicorn.

        Args:
            application: runs in the workers.
            name: name of its folder.
            layout: workers and their threads.
        """
        folder = self._folder / name
        folder.mkdir()
        return PublishedStack(
            folder,
            application,
            layout=layout,
            environment=self._variables,
            timeout_seconds=TIMEOUT_SECONDS,
        )
