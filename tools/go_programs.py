"""Programs that are built with Go for the tests: `make versitygw` and `make buildx`.

Each has a folder in `go`. Its go.mod pins the version, and its go.sum the hashes of all modules.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from slipway.embedded_aws import cache
from tools.images.engine import install, open_engine
from tools.installs import InstallError, NoHomeError, UnavailableError, exit_status

_FOLDERS = Path(__file__).with_name("go")


@dataclass(frozen=True)
class GoProgram:
    """A program, which is a package of a module.

    `optimised` has patterns of modules whose speed is measured; others are built quickly.
    """

    folder: str
    module: str
    package: str
    name: str
    optimised: tuple[str, ...] = ()

    @property
    def version(self) -> str:
        """Returns the pinned version, such as `v1.8.0`."""
        words = (_FOLDERS / self.folder / "go.mod").read_text("utf-8").split()
        return words[words.index(self.module) + 1]

    def place(self, environ: Mapping[str, str]) -> Path | None:
        """Returns where the built program is kept; None without HOME or XDG_CACHE_HOME."""
        directory = cache.cache_directory(environ)
        return directory / self.name / self.version / self.name if directory else None

    def build(self, environ: Mapping[str, str]) -> Path:
        """Builds the program where it is missing; returns its place.

        Raises `UnavailableError` without a Go toolchain or a module proxy in reach, and
        `InstallError` if the build failed.
        """
        built = self.place(environ)
        if built is None:
            raise NoHomeError
        if built.is_file():
            return built
        print(f"{self.name} {self.version}: building, some 2 minutes on two cores", flush=True)
        package = f"{self.module}/{self.package}"
        done = subprocess.run(  # noqa: S603  # fixed commands
            [_FOLDERS / "build.sh", _FOLDERS / self.folder, package, built, *self.optimised],
            env=dict(environ),
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        if done.returncode == os.EX_UNAVAILABLE:
            raise UnavailableError(done.stderr.strip())
        if done.returncode != 0:
            raise InstallError(done.stderr.strip())
        return built


# An S3 server that is not moto.
VERSITYGW = GoProgram(
    "versitygw",
    "github.com/versity/versitygw",
    "cmd/versitygw",
    "versitygw",
    ("github.com/versity/...", "github.com/valyala/...", "github.com/gofiber/..."),
)
# A plugin of Docker's client, which the image stack's builds use. Debian's docker.io has none.
BUILDX = GoProgram("buildx", "github.com/docker/buildx", "cmd/buildx", "docker-buildx")
# Debian's package and program of a registry, to which images are pushed.
REGISTRY = "docker-registry"


def versitygw(environ: Mapping[str, str]) -> str:
    return f"versitygw {VERSITYGW.version} is in {VERSITYGW.build(environ).parent}"


def buildx(environ: Mapping[str, str]) -> str:
    if shutil.which(REGISTRY, path=environ.get("PATH")) is None:
        install("registry", REGISTRY)
    with open_engine(environ) as engine:
        if engine.name == "podman":
            raise UnavailableError("buildx is Docker's; the engine here is podman.")
    return f"buildx {BUILDX.version} is in {BUILDX.build(environ).parent}"


def main(name: str, environ: Mapping[str, str] = os.environ) -> int:
    """Installs a program where it is missing; returns the exit status, see `exit_status`."""
    installers = {"versitygw": versitygw, "buildx": buildx}
    return exit_status(lambda: installers[name](environ))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
