"""Asks the workers' Python for the versions of its packages."""

import subprocess
from collections.abc import Sequence
from typing import Final

from containers.neuron.lanes import exit_reason
from containers.serving.predictor import ModelLoadError

_VERSIONS_TIMEOUT_SECONDS: Final = 60
# Run by the workers' Python: prints a line for each installed package.
_VERSIONS_PROGRAM: Final = """
import sys
from importlib.metadata import PackageNotFoundError, version
for name in sys.argv[1:]:
    try:
        print(name, version(name))
    except PackageNotFoundError:
        pass
"""


def installed_versions(python: str, packages: Sequence[str]) -> dict[str, str]:
    """Returns the versions of the packages that an interpreter has, without importing them.

    Raises `ModelLoadError` if the interpreter cannot be run.
    """
    if not packages:
        return {}
    try:
        done = subprocess.run(  # noqa: S603  (a fixed program, and names of packages)
            [python, "-c", _VERSIONS_PROGRAM, *packages],
            capture_output=True,
            text=True,
            timeout=_VERSIONS_TIMEOUT_SECONDS,
            check=False,
        )
    except OSError as error:
        raise ModelLoadError(
            f"cannot start SLIPWAY_WORKER_PYTHON={python}: {error.strerror}"
        ) from error
    except subprocess.TimeoutExpired as error:
        raise ModelLoadError(
            f"SLIPWAY_WORKER_PYTHON={python} did not answer within {_VERSIONS_TIMEOUT_SECONDS} "
            "seconds"
        ) from error
    if done.returncode:
        said = done.stderr.strip().splitlines()
        raise ModelLoadError(
            f"SLIPWAY_WORKER_PYTHON={python} does not work: "
            f"{said[-1] if said else exit_reason(done.returncode)}"
        )
    pairs = (line.partition(" ") for line in done.stdout.splitlines())
    return {name: version for name, _, version in pairs}
