"""Starts the measured servers, each as the processes that a container would hold."""

from collections.abc import Mapping
from pathlib import Path

from benchmarks.baselines.stack import Layout, question_answering
from benchmarks.neuron.design import Server, System
from benchmarks.program import Say
from benchmarks.servers import RunningServer, ServerPool, shared_settings

_ARGUMENTS = ("-m", "containers.neuron", "serve")


def container_variables(model_directory: Path, server: Server) -> dict[str, str]:
    """Returns the settings of Slipway's server, as an endpoint's container would get them.

    All other settings have their defaults. On the CPU the container itself shares the cores out
    among its workers.
    """
    return {
        **shared_settings(model_directory),
        "SLIPWAY_MAX_BATCH_SIZE": str(server.batch_size),
        "SLIPWAY_WORKERS": str(server.workers),
    }


class Servers(ServerPool[Server]):
    """The servers of one model.

    Args:
        folder: see `ServerPool`, as all that is not described here.
        model_directory: see `models`.
        environ: the user's variables.
        say: called when a server is started.
        cores: cores that each server shares out among its workers.
    """

    def __init__(
        self,
        folder: Path,
        model_directory: Path,
        environ: Mapping[str, str],
        say: Say,
        *,
        cores: int,
    ) -> None:
        super().__init__(folder, model_directory, environ, say)
        self._cores = cores

    def _start(self, key: Server) -> RunningServer:
        if key.system is System.SLIPWAY:
            settings = container_variables(self._model_directory, key)
            return self._start_container(_ARGUMENTS, str(key), settings)
        return self._start_published(
            question_answering(self._model_directory),
            str(key),
            Layout(key.workers, max(1, self._cores // key.workers)),
        )
