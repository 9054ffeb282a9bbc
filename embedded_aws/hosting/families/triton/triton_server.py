"""Becomes the user's own Triton Inference Server, started as AWS's image starts it.

This is a program of its own, `python -I triton_server.py`, that ends in an exec, so that SIGTERM
reaches the server. It needs SAGEMAKER_BIND_TO_PORT and SM_MODEL_DIR. The server is the directory
that `make triton` made, or TRITON_HOME. Nothing is downloaded.

The image's script is docker/sagemaker/serve of https://github.com/triton-inference-server/server.
The same variables have the same effect here, and the same directories are refused.

It uses only the standard library and imports nothing of this package, because the PYTHONPATH may be
the model's.
"""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

COMMAND: Final = (sys.executable, "-I", str(Path(__file__).resolve()))
"""Program and arguments that stand for the image."""

VERSION: Final = "2.51.0"
"""The server in the package nvidia-pytriton that `make triton` installs."""

PROGRAM: Final = "bin/tritonserver"
"""The server among the files that `make triton` installed, with its paths set."""

_DEFAULT_MODEL: Final = "SAGEMAKER_TRITON_DEFAULT_MODEL_NAME"
# Variable -> option, with the image's value where the variable is not set.
_OPTIONS: Final[Mapping[str, tuple[str, str | None]]] = {
    "SAGEMAKER_BIND_TO_PORT": ("--sagemaker-port=", None),
    "SAGEMAKER_TRITON_THREAD_COUNT": ("--sagemaker-thread-count=", None),
    "SAGEMAKER_TRITON_BUFFER_MANAGER_THREAD_COUNT": ("--buffer-manager-thread-count=", None),
    "SAGEMAKER_TRITON_LOG_VERBOSE": ("--log-verbose=", "true"),
    "SAGEMAKER_TRITON_LOG_INFO": ("--log-info=", None),
    "SAGEMAKER_TRITON_LOG_WARNING": ("--log-warning=", None),
    "SAGEMAKER_TRITON_LOG_ERROR": ("--log-error=", None),
    "SAGEMAKER_TRITON_SHM_DEFAULT_BYTE_SIZE": (
        "--backend-config=python,shm-default-byte-size=",
        "16777216",
    ),
    "SAGEMAKER_TRITON_SHM_GROWTH_BYTE_SIZE": (
        "--backend-config=python,shm-growth-byte-size=",
        "1048576",
    ),
}


class NotStartedError(Exception):
    """The server cannot be started; the message says why."""


def servers_directory(environ: Mapping[str, str]) -> Path | None:
    """Returns the directory of the server that `make triton` installed; None without a home."""
    cache = environ.get("XDG_CACHE_HOME")
    if not cache and environ.get("HOME"):
        cache = str(Path(environ["HOME"], ".cache"))
    return Path(cache, "slipway", "triton", VERSION) if cache else None


def find_server(environ: Mapping[str, str]) -> Path:
    """Returns the server's program; raises `NotStartedError` if there is none."""
    given = environ.get("TRITON_HOME")
    home = Path(given) if given else servers_directory(environ)
    if home is None or not (home / PROGRAM).is_file():
        raise NotStartedError(
            "Triton is not installed. Run `make triton` in Slipway's checkout, or set TRITON_HOME "
            "to what it installed elsewhere. Then start the embedded AWS again."
        )
    return home / PROGRAM


def missing_backends(home: Path, names: Sequence[str]) -> list[str]:
    return [name for name in names if not (home / "backends" / name).is_dir()]


def default_model(repository: Path, environ: Mapping[str, str]) -> str:
    """Returns the model that answers, or raises `NotStartedError`, as the image's script does."""
    if (repository / "config.pbtxt").exists():
        raise NotStartedError(
            "Incorrect directory structure: config.pbtxt lies at the root of the model repository, "
            "and not in a directory of the model's name."
        )
    names = sorted(path.name for path in repository.iterdir() if path.is_dir())
    named = environ.get(_DEFAULT_MODEL)
    if named:
        if named not in names:
            raise NotStartedError(f"{_DEFAULT_MODEL} is {named}, and there is no such directory.")
        return named
    if len(names) != 1:
        found = ", ".join(names) or "none"
        raise NotStartedError(
            f"The model repository must have one directory, or {_DEFAULT_MODEL} must name one: "
            f"found {found}."
        )
    return names[0]


def arguments(repository: Path, model: str, environ: Mapping[str, str]) -> Iterator[str]:
    yield from (
        "--allow-sagemaker=true",
        "--allow-grpc=false",
        "--allow-http=false",
        "--allow-metrics=false",
        "--model-control-mode=explicit",
        "--model-namespacing=true",
        f"--model-repository={repository}",
        f"--load-model={model}",
    )
    for name, (option, default) in _OPTIONS.items():
        value = environ.get(name) or default
        if value:
            yield option + value


def server_environment(environ: Mapping[str, str], model: str) -> dict[str, str]:
    return {**environ, _DEFAULT_MODEL: model}


def main() -> int:
    """Becomes the server; returns the exit status if that fails."""
    repository = Path(os.environ["SM_MODEL_DIR"])
    try:
        program = find_server(os.environ)
        model = default_model(repository, os.environ)
    except NotStartedError as error:
        print(error, file=sys.stderr)
        return 1
    command = [str(program), *arguments(repository, model, os.environ)]
    try:
        os.execve(program, command, server_environment(os.environ, model))  # noqa: S606
    except OSError as error:
        print(f"cannot run {program}: {error.strerror}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
