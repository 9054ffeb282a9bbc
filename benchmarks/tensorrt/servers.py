"""Starts the measured servers, each as the processes that a container would hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from benchmarks.baselines.stack import Layout, PublishedStack, text_generation
from benchmarks.program import ROOT
from benchmarks.servers import TIMEOUT_SECONDS, ContainerServer, server_variables
from benchmarks.tensorrt.design import System

_ARGUMENTS = {
    System.SLIPWAY: ("-m", "containers.tensorrt", "serve"),
    System.STATIC: ("-m", "benchmarks.baselines.static_batching"),
}


def container_variables(
    model_directory: Path, *, max_batch_size: int, threads: int
) -> dict[str, str]:
    """Returns the settings of Slipway's server, as an endpoint's container would get them.

    Args:
        model_directory: the model to serve.
        max_batch_size: most rows of a batch.
        threads: threads that compute.
    """
    return {
        "SAGEMAKER_BIND_TO_PORT": "0",
        "SM_MODEL_DIR": str(model_directory),
        "SLIPWAY_MAX_BATCH_SIZE": str(max_batch_size),
        "SLIPWAY_INTRA_OP_THREADS": str(threads),
        "SLIPWAY_REQUEST_TIMEOUT_SECONDS": str(TIMEOUT_SECONDS),
    }


@dataclass(frozen=True)
class ServerKey:
    """One server of a model.

    Args:
        system: the kind of server.
        layout: layout of the published stack; None for Slipway.
    """

    system: System
    layout: Layout | None = None


class Servers:
    """The servers of one model, each started when it is first needed.

    They all run at the same time, but only one is measured at a time: a waiting server takes no
    processor. Use it as a context: leaving stops them all.

    Args:
        folder: an empty folder, for logs and sockets.
        model_directory: see `models`.
        max_batch_size: largest batch of Slipway's server.
        threads: threads of Slipway's server.
        environ: the user's variables.
        say: called when a server is started.
    """

    def __init__(
        self,
        folder: Path,
        model_directory: Path,
        *,
        max_batch_size: int,
        threads: int,
        environ: Mapping[str, str],
        say: Callable[[str], None],
    ) -> None:
        self._folder = folder
        self._model_directory = model_directory
        self._variables = server_variables(environ)
        self._container_variables = container_variables(
            model_directory, max_batch_size=max_batch_size, threads=threads
        )
        self._say = say
        self._running: dict[ServerKey, ContainerServer | PublishedStack] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Servers:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def port(self, key: ServerKey) -> int:
        """Returns a server's port; starts the server if it does not run yet.

        Raises:
            BenchmarkError: it did not start.
        """
        if key not in self._running:
            self._say(f"starting {_named(key)}")
            server = self._start(key)
            self._stack.callback(server.stop)
            self._running[key] = server
        return self._running[key].port

    def recent_output(self, key: ServerKey) -> str:
        """Returns the last lines that a running server has logged."""
        return self._running[key].recent_output()

    def _start(self, key: ServerKey) -> ContainerServer | PublishedStack:
        if key.layout is None:
            return ContainerServer(
                _ARGUMENTS[key.system],
                self._folder / f"{key.system}.log",
                {**self._variables, **self._container_variables},
            )
        folder = self._folder / f"{key.system}-{key.layout.workers}"
        folder.mkdir()
        return PublishedStack(
            folder,
            text_generation(self._model_directory, use_cache=key.system is System.CACHED),
            layout=key.layout,
            root=ROOT,
            environment=self._variables,
            timeout_seconds=TIMEOUT_SECONDS,
        )


def _named(key: ServerKey) -> str:
    if key.layout is None:
        return key.system.label
    workers, threads = key.layout.workers, key.layout.threads
    return f"{key.system.label} ({workers} x {threads} threads)"
