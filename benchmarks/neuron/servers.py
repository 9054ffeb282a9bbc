"""Starts the measured servers, each as the processes that a container would hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path

from benchmarks.baselines.stack import Layout, PublishedStack, question_answering
from benchmarks.neuron.design import Server, System
from benchmarks.program import ROOT
from benchmarks.servers import TIMEOUT_SECONDS, ContainerServer, server_variables

_ARGUMENTS = ("-m", "containers.neuron", "serve")


def container_variables(model_directory: Path, server: Server) -> dict[str, str]:
    """Returns the settings of Slipway's server, as an endpoint's container would get them.

    All other settings have their defaults. On the CPU the container itself shares the cores out
    among its workers.
    """
    return {
        "SAGEMAKER_BIND_TO_PORT": "0",
        "SM_MODEL_DIR": str(model_directory),
        "SLIPWAY_MAX_BATCH_SIZE": str(server.batch_size),
        "SLIPWAY_WORKERS": str(server.workers),
        "SLIPWAY_REQUEST_TIMEOUT_SECONDS": str(TIMEOUT_SECONDS),
    }


class Servers:
    """The servers of one model, each started when it is first needed.

    They all run at the same time, but only one is measured at a time: a waiting server takes no
    processor. Use it as a context: leaving stops them all.

    Args:
        folder: an empty folder, for logs and sockets.
        model_directory: see `models`.
        cores: cores that each server shares out among its workers.
        environ: the user's variables.
        say: called when a server is started.
    """

    def __init__(
        self,
        folder: Path,
        model_directory: Path,
        *,
        cores: int,
        environ: Mapping[str, str],
        say: Callable[[str], None],
    ) -> None:
        self._folder = folder
        self._model_directory = model_directory
        self._cores = cores
        self._variables = server_variables(environ)
        self._say = say
        self._running: dict[Server, ContainerServer | PublishedStack] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Servers:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def port(self, server: Server) -> int:
        """Returns a server's port; starts the server if it does not run yet.

        Raises:
            BenchmarkError: it did not start.
        """
        if server not in self._running:
            self._say(f"starting {server.key}")
            started = self._start(server)
            self._stack.callback(started.stop)
            self._running[server] = started
        return self._running[server].port

    def recent_output(self, server: Server) -> str:
        """Returns the last lines that a running server has logged."""
        return self._running[server].recent_output()

    def _start(self, server: Server) -> ContainerServer | PublishedStack:
        if server.system is System.SLIPWAY:
            return ContainerServer(
                _ARGUMENTS,
                self._folder / f"{server.key}.log",
                {**self._variables, **container_variables(self._model_directory, server)},
            )
        folder = self._folder / server.key
        folder.mkdir()
        return PublishedStack(
            folder,
            question_answering(self._model_directory),
            layout=Layout(server.workers, max(1, self._cores // server.workers)),
            root=ROOT,
            environment=self._variables,
            timeout_seconds=TIMEOUT_SECONDS,
        )
