"""`python -m tools.triton`, or `make triton`."""

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from embedded_aws.hosting.families.triton.triton_server import VERSION, servers_directory

REQUIREMENTS = Path(__file__).with_name("requirements.txt")
# The server has an interpreter for each of these; numpy 1 has no wheels for later ones.
PYTHONS = ((3, 11), (3, 12))


class InstallError(Exception):
    """The server cannot be installed; the message says why."""


def main(environ: Mapping[str, str] = os.environ) -> int:
    """Installs the server where it is missing; returns the exit status.

    Args:
        environ: the user's variables: HOME or XDG_CACHE_HOME.
    """
    try:
        home = install(environ)
    except InstallError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"Triton {VERSION}: is in {home}")
    return 0


def install(environ: Mapping[str, str]) -> Path:
    """Installs the server where it is missing; returns its directory.

    Args:
        environ: the user's variables: HOME or XDG_CACHE_HOME.

    Raises:
        InstallError: this machine cannot have it, or a package cannot be installed.
    """
    home = servers_directory(environ)
    if home is None:
        raise InstallError("Neither HOME nor XDG_CACHE_HOME says where the server is kept.")
    if (home / "backends").is_dir():
        return home
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        raise InstallError("NVIDIA publishes the server for Linux on x86-64 alone.")
    if sys.version_info[:2] not in PYTHONS:
        wanted = " or ".join(f"{major}.{minor}" for major, minor in PYTHONS)
        raise InstallError(f"The server's Python models need Python {wanted}.")
    shutil.rmtree(home, ignore_errors=True)
    print(f"Triton {VERSION}: installing 200 MB of packages", flush=True)
    _uv("venv", "--python", sys.executable, str(home))
    _uv("pip", "install", "--python", str(home), "--require-hashes", "-r", str(REQUIREMENTS))
    _lay_backends(home)
    return home


def _lay_backends(home: Path) -> None:
    """Puts the Python back end and its interpreter into one directory, last of all."""
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    server = home / "lib" / f"python{python}" / "site-packages" / "pytriton" / "tritonserver"
    laid = home / "backends.new"
    shutil.copytree(server / "backends", laid)
    stub = server / "python_backend_stubs" / python / "triton_python_backend_stub"
    shutil.copy(stub, laid / "python")
    laid.rename(home / "backends")


def _uv(*arguments: str) -> None:
    command = [str(Path(sys.executable).with_name("uv")), "--quiet", *arguments]
    done = subprocess.run(command, check=False)  # noqa: S603  # our own arguments
    if done.returncode != 0:
        raise InstallError(f"`uv {' '.join(arguments)}` failed; its messages are above.")


if __name__ == "__main__":
    sys.exit(main())
