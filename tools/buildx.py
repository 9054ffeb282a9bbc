"""Installs buildx and a registry, for pushes of images: `make buildx`.

buildx is a plugin of Docker's client, which the image stack's builds use. Debian's docker.io has
none.
"""

import os
import shutil
import sys
from collections.abc import Mapping

from tools.go_programs import GoProgram
from tools.images.engine import install, open_engine
from tools.installs import UnavailableError, exit_status

BUILDX = GoProgram("buildx", "github.com/docker/buildx", "cmd/buildx", "docker-buildx")
"""The plugin."""

REGISTRY = "docker-registry"
"""Debian's package and program of a registry."""


def main(environ: Mapping[str, str] = os.environ) -> int:
    def both() -> str:
        if shutil.which(REGISTRY, path=environ.get("PATH")) is None:
            install("registry", REGISTRY)
        with open_engine(environ) as engine:
            if engine.name == "podman":
                raise UnavailableError("buildx is Docker's; the engine here is podman.")
        return f"buildx {BUILDX.version} is in {BUILDX.build(environ).parent}"

    return exit_status(both)


if __name__ == "__main__":
    sys.exit(main())
