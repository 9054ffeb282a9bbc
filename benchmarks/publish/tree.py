"""Times a command, and finds the most memory that it and its children have at once."""

import shlex
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.errors import BenchmarkError
from benchmarks.execution import interrupts_held
from benchmarks.processes import kill_group, start_group

_COMMAND_SECONDS = 1800.0
_SAMPLE_SECONDS = 0.05
_KIBIBYTE = 1024


@dataclass(frozen=True)
class Measured:
    """One run of a command.

    Args:
        seconds: wall time, from starting its process until it ended.
        peak_bytes: most resident memory of all its processes together, sampled. A page that two
            processes share counts twice.
    """

    seconds: float
    peak_bytes: int


def run_measured(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], log: Path
) -> Measured:
    """Runs a command to its end.

    Raises:
        BenchmarkError: it failed or took too long; the message has its output.
    """
    peak, ended = _Peak(), threading.Event()
    with log.open("wb") as output:
        started = time.perf_counter()
        with interrupts_held():
            process = start_group(
                command, folder, environment, stdout=output, stderr=subprocess.STDOUT
            )
        sampler = threading.Thread(target=peak.follow, args=(process.pid, ended))
        sampler.start()
        try:
            process.wait(_COMMAND_SECONDS)
            seconds = time.perf_counter() - started
        except BaseException as error:
            kill_group(process)
            process.wait()
            if isinstance(error, subprocess.TimeoutExpired):
                raise BenchmarkError(
                    f"`{shlex.join(command)}` did not end within {_COMMAND_SECONDS:g} seconds"
                ) from None
            raise
        finally:
            ended.set()
            sampler.join()
    if process.returncode:
        raise BenchmarkError(
            f"`{shlex.join(command)}` ended with exit code {process.returncode}\n"
            f"{log.read_text('utf-8', errors='replace')}"
        )
    return Measured(seconds, peak.size_bytes)


class _Peak:
    def __init__(self) -> None:
        self.size_bytes = 0

    def follow(self, process_id: int, ended: threading.Event) -> None:
        """Samples the memory until the event is set."""
        while not ended.wait(_SAMPLE_SECONDS):
            self.size_bytes = max(self.size_bytes, tree_bytes(process_id))


def tree_bytes(process_id: int) -> int:
    """Returns the resident memory of a process and its descendants; 0 once it has ended."""
    folder = Path("/proc") / str(process_id)
    try:
        status = (folder / "status").read_text("utf-8")
        children = [
            int(child)
            for thread in (folder / "task").iterdir()
            for child in (thread / "children").read_text("utf-8").split()
        ]
    except (FileNotFoundError, ProcessLookupError):
        return 0
    own = next((line for line in status.splitlines() if line.startswith("VmRSS:")), None)
    own_bytes = int(own.split()[1]) * _KIBIBYTE if own is not None else 0
    return own_bytes + sum(map(tree_bytes, children))
