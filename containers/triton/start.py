"""Writes the model repository, then runs Triton on it. This module keeps to Python 3.10."""

import os
import secrets
import socket
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NoReturn

from containers.serving.exit_codes import EXIT_OPERATOR_PROBLEM
from containers.serving.listening import ListenError
from containers.serving.logs import configure_logging, log_error, log_info
from containers.serving.predictor import ModelLoadError
from containers.serving.settings import EnvironmentReader, SettingsError
from containers.triton import server_process
from containers.triton.guard import Guard
from containers.triton.model_directory import check_files, read_config
from containers.triton.repository import TextModel
from containers.triton.settings import TritonSettings

COMMANDS: Final = ("serve", "compile")

_PROGRAM: Final = "containers.triton.model"
# What the guard does not ask for is nobody's. The value of the header is known to no client.
_NOT_SERVED: Final = "metadata,shared-memory,model-config,model-repository,statistics,trace,logging"


def serve(environ: Mapping[str, str]) -> NoReturn:
    configure_logging("INFO", sys.stdout)
    reader = EnvironmentReader(environ)
    settings = TritonSettings.read(reader)
    try:
        reader.finish()
        model = text_model(settings)
    except SettingsError as error:
        _fail("settings_invalid", problems=error.problems)
    except ModelLoadError as error:
        _fail("model_load_failed", message=str(error))
    repository = Path(tempfile.mkdtemp(prefix="slipway-triton-", dir=_writable_home(environ)))
    model.write(repository)
    triton_port = _free_port(settings.port)
    command = [str(settings.server), *arguments(settings, repository, triton_port)]
    try:
        guard = Guard(settings, triton_port, settings.instance_count * _gpus(on_gpu=model.on_gpu))
    except ListenError as error:
        _fail("listen_failed", message=str(error))
    log_info("server_starting", command=command)
    restricted = f"--http-restricted-api={_NOT_SERVED}:slipway={secrets.token_hex()}"
    try:
        sys.exit(server_process.run([*command, restricted], environ, guard))
    except OSError as error:
        _fail(
            "server_missing",
            message=f"cannot run {settings.server}: {error.strerror}; the container's image has "
            "the server, and for the embedded AWS `make triton` installs it",
        )


def _writable_home(environ: Mapping[str, str]) -> str | None:
    """Returns the home directory, or None if it cannot be written to.

    An endpoint's own home directory goes away with the endpoint. A container with a read-only root,
    or with a user that its image does not know, has no home to write to.
    """
    home = environ.get("HOME")
    return home if home and os.access(home, os.W_OK) else None


def text_model(settings: TritonSettings) -> TextModel:
    """Returns the model of the repository, for the files in the model directory.

    Raises:
        ModelLoadError: a file is missing or not usable.
    """
    on_gpu = check_files(settings.model_dir)
    read_config(settings.model_dir)
    return TextModel(
        settings,
        on_gpu=on_gpu,
        parameters={
            "intra_op_threads": str(settings.intra_op_threads),
            "max_batch_size": str(settings.max_batch_size),
            "max_input_tokens": str(settings.max_input_tokens),
            "max_new_tokens": str(settings.max_new_tokens),
            "model_dir": str(settings.model_dir),
            # Without its first character, which no text of a configuration can have.
            "socket": server_process.address(os.getpid())[1:],
        },
        program=_PROGRAM,
        program_path=Path(__file__).resolve().parents[2],
    )


def arguments(settings: TritonSettings, repository: Path, port: int) -> Iterator[str]:
    """Yields the server's arguments.

    `port` is that of its HTTP interface, on loopback.
    """
    yield from (
        f"--model-repository={repository}",
        "--model-control-mode=none",
        # The configuration is complete: Triton need not start the model to ask it.
        "--disable-auto-complete-config",
        "--exit-on-error=true",
        # Only the guard asks it, and Triton's front end for SageMaker listens on all addresses.
        "--allow-sagemaker=false",
        "--http-address=127.0.0.1",
        f"--http-port={port}",
        # SageMaker sends SIGKILL 30 s after SIGTERM, and the guard drains before Triton.
        "--exit-timeout-secs=5",
        "--allow-grpc=false",
        f"--log-verbose={int(settings.log_verbose)}",
        # Its tables would push the reason of a failure out of the lines that SageMaker shows.
        f"--log-info={str(settings.log_verbose).lower()}",
        f"--backend-config=python,shm-default-byte-size={settings.shared_memory_bytes}",
    )
    if settings.metrics_port is None:
        yield "--allow-metrics=false"
    else:
        yield from ("--metrics-address=127.0.0.1", f"--metrics-port={settings.metrics_port}")


def _gpus(*, on_gpu: bool) -> int:
    """Returns how often Triton loads an instance group: on each GPU, or once on the host."""
    return len(list(Path("/dev").glob("nvidia[0-9]*"))) or 1 if on_gpu else 1


def _free_port(taken: int) -> int:
    """Returns a port of loopback that is free, and not the server's own."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
    return port if port != taken else _free_port(taken)


# Any: JSON values.
def _fail(event: str, **fields: Any) -> NoReturn:
    log_error(event, **fields)
    sys.exit(EXIT_OPERATOR_PROBLEM)
