"""Programs that a benchmark calls, which may not be installed."""

import shutil

from benchmarks.errors import BenchmarkError
from benchmarks.machine import program_path
from slipway.errors import UserError
from slipway.publishing import s5cmd


def find_program(name: str, remedy: str) -> str:
    found = shutil.which(name, path=program_path())
    if found is None:
        raise BenchmarkError(f"`{name}` is not installed{remedy}")
    return found


def find_s5cmd() -> str:
    try:
        return s5cmd.executable()
    except UserError as error:
        raise BenchmarkError(str(error)) from None
