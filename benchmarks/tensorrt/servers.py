"""Starts the measured servers, each as the processes that a container would hold."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.baselines.stack import Layout, text_generation
from benchmarks.program import Say
from benchmarks.servers import RunningServer, ServerPool, shared_settings
from benchmarks.tensorrt.design import System

_ARGUMENTS = {
    System.SLIPWAY: ("-m", "containers.tensorrt", "serve"),
    System.STATIC: ("-m", "benchmarks.baselines.static_batching"),
}


def container_variables(
    model_directory: Path, *, max_batch_size: int, threads: int
) -> dict[str, str]:
    """Returns the settings of Slipway's server, as an endpoint's container would get them."""
    return {
        **shared_settings(model_directory),
        "SLIPWAY_MAX_BATCH_SIZE": str(max_batch_size),
        "SLIPWAY_INTRA_OP_THREADS": str(threads),
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

    def __str__(self) -> str:
        if self.layout is None:
            return self.system.label
        workers, threads = self.layout.workers, self.layout.threads
        return f"{self.system.label} ({workers} x {threads} threads)"


class Servers(ServerPool[ServerKey]):
    """The servers of one model.

    Args:
        folder: see `ServerPool`, as all that is not described here.
        model_directory: see `models`.
        environ: the user's variables.
        say: called when a server is started.
        max_batch_size: largest batch of Slipway's server.
        threads: threads of Slipway's server.
    """

    def __init__(
        self,
        folder: Path,
        model_directory: Path,
        environ: Mapping[str, str],
        say: Say,
        *,
        max_batch_size: int,
        threads: int,
    ) -> None:
        super().__init__(folder, model_directory, environ, say)
        self._settings = container_variables(
            model_directory, max_batch_size=max_batch_size, threads=threads
        )

    def _start(self, key: ServerKey) -> RunningServer:
        if key.layout is None:
            return self._start_container(_ARGUMENTS[key.system], key.system, self._settings)
        return self._start_published(
            text_generation(self._model_directory, use_cache=key.system is System.CACHED),
            f"{key.system}-{key.layout.workers}",
            key.layout,
        )
