"""`python -m tools.triton`, or `make triton`."""

import os
import platform
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path

from slipway.embedded_aws.hosting.families.triton.triton_server import (
    PROGRAM,
    VERSION,
    servers_directory,
)
from tools.installs import InstallError, NoHomeError, UnavailableError, exit_status

REQUIREMENTS = Path(__file__).with_name("requirements.txt")
# The server has an interpreter for each of these; numpy 1 has no wheels for later ones.
PYTHONS = ((3, 11), (3, 12))


def main(environ: Mapping[str, str] = os.environ) -> int:
    return exit_status(lambda: f"Triton {VERSION}: is in {install(environ)}")


def install(environ: Mapping[str, str]) -> Path:
    """Installs the server where it is missing; returns its directory.

    Raises `InstallError` if this machine cannot have it, or a package cannot be installed.
    """
    home = servers_directory(environ)
    if home is None:
        raise NoHomeError
    if (home / "backends").is_dir():
        return home
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        raise UnavailableError("NVIDIA publishes the server for Linux on x86-64 alone.")
    if sys.version_info[:2] not in PYTHONS:
        wanted = " or ".join(f"{major}.{minor}" for major, minor in PYTHONS)
        raise UnavailableError(f"The server's Python models need Python {wanted}.")
    shutil.rmtree(home, ignore_errors=True)
    print(f"Triton {VERSION}: installing packages, 424 MB on disk", flush=True)
    _uv("venv", "--python", sys.executable, str(home))
    _uv("pip", "install", "--python", str(home), "--require-hashes", "-r", str(REQUIREMENTS))
    _lay_backends(home)
    return home


def _lay_backends(home: Path) -> None:
    """Puts the Python back end beside its interpreter, and writes the program that starts both."""
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    server = home / "lib" / f"python{python}" / "site-packages" / "pytriton" / "tritonserver"
    laid = home / "backends.new"
    shutil.copytree(server / "backends", laid)
    stub = server / "python_backend_stubs" / python / "triton_python_backend_stub"
    shutil.copy(stub, laid / "python")
    libraries = (
        server.parents[1] / "nvidia_pytriton.libs",
        # The process of a Python model is Python as a library.
        Path(sysconfig.get_config_var("LIBDIR")),
    )
    program = home / PROGRAM
    # The first `python3` on the path has the packages of Python models.
    program.write_text(
        f"""\
#!/bin/sh
export PATH={shlex.quote(str(home / "bin"))}:"$PATH"
export LD_LIBRARY_PATH={shlex.quote(":".join(map(str, libraries)))}
exec {shlex.quote(str(server / "bin" / "tritonserver"))} \\
  --backend-directory={shlex.quote(str(home / "backends"))} "$@"
""",
        encoding="utf-8",
    )
    program.chmod(0o755)
    laid.rename(home / "backends")


def _uv(*arguments: str) -> None:
    command = [str(Path(sys.executable).with_name("uv")), "--quiet", *arguments]
    done = subprocess.run(command, check=False)  # noqa: S603  # a fixed command
    if done.returncode != 0:
        raise InstallError(f"`uv {' '.join(arguments)}` failed; its messages are above.")


if __name__ == "__main__":
    sys.exit(main())
