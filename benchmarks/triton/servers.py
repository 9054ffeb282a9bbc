"""Starts the measured servers, each as the processes that a container would hold."""

import os
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.errors import BenchmarkError
from benchmarks.processes import BackgroundProcess, answers_ping, free_port
from benchmarks.program import ROOT
from benchmarks.servers import RunningServer, server_variables, shared_settings, start_container
from benchmarks.triton.design import MAX_BATCH_SIZE, MAX_TOKENS, MODEL_DIRECTORY, Server, System
from containers.serving.settings import EnvironmentReader
from containers.triton.repository import TextModel
from containers.triton.settings import TritonSettings
from containers.triton.start import arguments
from slipway.embedded_aws.hosting.families.triton import triton_server

_START_SECONDS = 300.0
_SERVING_CORE = ("-m", "benchmarks.triton.serving_core")
_MODEL_NAME = "t5-spelling"
_NO_FRONT = "--allow-sagemaker=false"


def find_triton(environ: Mapping[str, str]) -> Path:
    try:
        return triton_server.find_server(environ)
    except triton_server.NotStartedError as error:
        raise BenchmarkError(str(error)) from None


def container_variables(server: Server) -> dict[str, str]:
    """Returns the settings of a server, as an endpoint's container would get them."""
    size = 1 if server.system is System.UNBATCHED else MAX_BATCH_SIZE
    if server.system is System.CORE:
        return {**shared_settings(MODEL_DIRECTORY), "SLIPWAY_MAX_BATCH_SIZE": str(size)}
    return {
        "SM_MODEL_DIR": str(MODEL_DIRECTORY),
        "SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": _MODEL_NAME,
        "SLIPWAY_INSTANCE_COUNT": str(server.copies),
        "SLIPWAY_MAX_BATCH_SIZE": str(size),
        "SLIPWAY_MAX_INPUT_TOKENS": str(MAX_TOKENS),
        "SLIPWAY_MAX_NEW_TOKENS": str(MAX_TOKENS),
    }


class TritonServer(BackgroundProcess):
    """A Triton that is ready; `folder` is its home directory and receives the log."""

    def __init__(
        self, command: Sequence[str], port: int, folder: Path, variables: Mapping[str, str]
    ) -> None:
        self.port = port
        environment = {**variables, "HOME": str(folder)}
        super().__init__(command, ROOT, environment, folder / "log")
        self.wait_until(lambda: answers_ping(port), _START_SECONDS)


def start_server(server: Server, folder: Path, triton: Path) -> RunningServer:
    variables = container_variables(server)
    if server.system is System.CORE:
        return start_container(_SERVING_CORE, folder / f"{server}.log", variables)
    port = free_port()
    folder = folder / str(server)
    folder.mkdir()
    variables |= {
        **server_variables(os.environ),
        "SAGEMAKER_BIND_TO_PORT": str(port),
        "SLIPWAY_TRITON_SERVER": str(triton),
    }
    command: Sequence[str] = (sys.executable, "-m", "containers.triton", "serve")
    if server.system is System.GENERATE:
        command = _generate_command(triton, folder, variables)
        variables["HF_HUB_OFFLINE"] = "1"
    return TritonServer(command, port, folder, variables)


def _generate_command(triton: Path, folder: Path, variables: Mapping[str, str]) -> Sequence[str]:
    """Writes the repository of the model with `generate`; returns the server's command."""
    settings = TritonSettings.read(EnvironmentReader(variables))
    repository = folder / "repository"
    model = TextModel(
        settings,
        on_gpu=False,
        parameters={
            "max_new_tokens": str(settings.max_new_tokens),
            "model_dir": str(settings.model_dir),
            "packages": sysconfig.get_path("purelib"),
            "threads": str(settings.intra_op_threads),
        },
        program="benchmarks.triton.generate_model",
        program_path=ROOT,
    )
    model.write(repository)
    # As AWS's image starts it: no guard, and the front end for SageMaker.
    own = [each for each in arguments(settings, repository, free_port()) if each != _NO_FRONT]
    front = ("--allow-sagemaker=true", f"--sagemaker-port={settings.port}")
    return (str(triton), *own, *front)
