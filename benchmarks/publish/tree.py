"""Times a command, and finds the most memory that it and its children have at once."""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.execution import run_timed

_COMMAND_SECONDS = 1800.0
_SAMPLE_SECONDS = 0.05
_KIBIBYTE = 1024


@dataclass(frozen=True)
class Measured:
    """One run of a command."""

    seconds: float  # from starting its process until it ended
    peak_bytes: int  # resident, of all processes, sampled; a shared page counts twice


def run_measured(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> Measured:
    samples, ended = [0], threading.Event()
    samplers: list[threading.Thread] = []

    def sample(process_id: int) -> None:
        while not ended.wait(_SAMPLE_SECONDS):
            samples.append(tree_bytes(process_id))

    def follow(process_id: int) -> None:
        samplers.append(threading.Thread(target=sample, args=(process_id,)))
        samplers[0].start()

    try:
        timing, _ = run_timed(
            command, folder, environment, limit_seconds=_COMMAND_SECONDS, started=follow
        )
    finally:
        ended.set()
        for sampler in samplers:
            sampler.join()
    return Measured(timing.seconds, max(samples))


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
