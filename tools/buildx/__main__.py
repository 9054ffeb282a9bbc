"""`python -m tools.buildx`, or `make buildx`."""

import os
import shutil
import sys
from collections.abc import Mapping

from tools.buildx import BUILDX, REGISTRY
from tools.images.engine import install, open_engine
from tools.installs import UnavailableError, exit_status


def main(environ: Mapping[str, str] = os.environ) -> int:
    """Installs buildx and a registry where they are missing; returns the exit status.

    It is 69 where this machine cannot have them, and 1 after any other problem.

    Args:
        environ: the user's variables: PATH, HOME or XDG_CACHE_HOME, and Go's own variables.
    """

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
