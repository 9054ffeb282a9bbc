"""`python -m tools.versitygw`, or `make versitygw`.

go.mod pins the version and go.sum the hashes of every module.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tools.installs import InstallError, UnavailableError, cache_directory, exit_status

_FOLDER = Path(__file__).parent
_PACKAGE = "github.com/versity/versitygw/cmd/versitygw"


def version() -> str:
    """Returns the pinned version, such as `v1.8.0`."""
    words = (_FOLDER / "go.mod").read_text("utf-8").split()
    return words[words.index("github.com/versity/versitygw") + 1]


def program(environ: Mapping[str, str]) -> Path | None:
    """Returns the place of the server that `make versitygw` builds; None without a home."""
    try:
        return cache_directory(environ) / "versitygw" / version() / "versitygw"
    except InstallError:
        return None


def main(environ: Mapping[str, str] = os.environ) -> int:
    """Builds the server where it is missing; returns the exit status.

    It is 69 where this machine cannot have the server, and 1 after any other problem.

    Args:
        environ: the user's variables: PATH, HOME or XDG_CACHE_HOME, and Go's own variables.
    """
    return exit_status(lambda: f"versitygw {version()} is in {build(environ).parent}")


def build(environ: Mapping[str, str]) -> Path:
    """Builds the server where it is missing; returns its program.

    Args:
        environ: the user's variables: PATH, HOME or XDG_CACHE_HOME, and Go's own variables.

    Raises:
        UnavailableError: there is no Go toolchain, or no module proxy in reach.
        InstallError: the build failed.
    """
    built = cache_directory(environ) / "versitygw" / version() / "versitygw"
    if built.is_file():
        return built
    go = shutil.which("go", path=environ.get("PATH"))
    if go is None:
        raise UnavailableError("Go is not on the PATH: https://go.dev/doc/install")
    # Another Go is not downloaded, and the user's own flags do not change what is built.
    variables = {**environ, "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly", "CGO_ENABLED": "0"}
    print(f"versitygw {version()}: building, some four minutes", flush=True)
    loaded = _run((go, "mod", "download"), variables)
    # Of Go: a module has another hash than go.sum.
    if loaded.returncode != 0 and "SECURITY ERROR" not in loaded.stderr:
        raise UnavailableError(f"`go mod download` failed:\n{loaded.stderr.strip()}")
    built.parent.mkdir(parents=True, exist_ok=True)
    # Renamed once it is whole.
    unfinished = built.with_suffix(f".{os.getpid()}")
    done = _run((go, "build", "-trimpath", "-o", str(unfinished), _PACKAGE), variables)
    if done.returncode != 0:
        raise InstallError(f"`go build` failed:\n{(loaded.stderr + done.stderr).strip()}")
    unfinished.replace(built)
    return built


def _run(command: Sequence[str], variables: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603  # fixed commands
        command, cwd=_FOLDER, env=variables, capture_output=True, text=True, check=False
    )


if __name__ == "__main__":
    sys.exit(main())
