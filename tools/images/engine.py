"""The container engine that builds and runs the images, and which images it could build."""

import contextlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from slipway.embedded_aws.containers import opening
from slipway.embedded_aws.containers.engine import Engine, NoEngineError
from tools.installs import InstallError, UnavailableError, cache_directory

_LOG_LINES = 10


@contextlib.contextmanager
def open_engine(environ: Mapping[str, str] = os.environ) -> Iterator[Engine]:
    """Yields the machine's engine, or one of the project's own; raises `UnavailableError`."""
    with contextlib.ExitStack() as stack:
        try:
            directory = cache_directory(environ) / "images"
            engine = stack.enter_context(opening.open_engine(directory, environ, _install_engine))
        except NoEngineError as error:
            raise UnavailableError(str(error)) from error
        yield engine


def _install_engine(packages: Sequence[str]) -> None:
    try:
        install(packages[0], *packages)
    except UnavailableError as error:
        raise NoEngineError(str(error)) from error


def install(purpose: str, *packages: str) -> None:
    """Installs packages of Debian; raises `UnavailableError` if that is not possible here."""
    words = ["apt-get", "install", "--yes", "--no-install-recommends", *packages]
    command = " ".join(words)
    if shutil.which("apt-get") is None:
        raise UnavailableError(f"There is no {purpose}, and no apt-get to install it.")
    if os.geteuid() != 0:
        raise UnavailableError(f"There is no {purpose}. Run `sudo {command}`, as root.")
    done = _apt(*words)
    if done.returncode != 0:
        # The lists of packages may be old.
        _apt("apt-get", "update")
        done = _apt(*words)
    if done.returncode != 0:
        last = "\n".join(done.stderr.strip().splitlines()[-_LOG_LINES:])
        raise UnavailableError(f"`{command}` failed:\n{last}")


def _apt(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603
        words,
        env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def record(names: Iterable[str], environ: Mapping[str, str]) -> None:
    """Keeps the names of images that this machine could build, in the user's cache."""
    images = recorded(environ) | set(names)
    file = _file(environ)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(sorted(images)), "utf-8")


def recorded(environ: Mapping[str, str]) -> set[str]:
    try:
        return set(json.loads(_file(environ).read_text("utf-8")))
    except (InstallError, FileNotFoundError):
        return set()


def _file(environ: Mapping[str, str]) -> Path:
    return cache_directory(environ) / "images" / "built.json"
