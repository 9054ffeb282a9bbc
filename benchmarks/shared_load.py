"""One load, shared out among several processes of the load driver."""

import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import TypeVar

Load = TypeVar("Load")
Result = TypeVar("Result")


def shared_out(total: int, processes: int) -> list[int]:
    """Returns the share of each process; no share is 0, and the first shares take the remainder."""
    used = min(total, processes)
    return [total // used + (number < total % used) for number in range(used)]


def drive_in_processes(drive: Callable[[Load], Result], loads: Sequence[Load]) -> list[Result]:
    """Drives each load in a process of its own, all at the same time; returns their results."""
    # Fresh processes, which do not share this process's imports and connections.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(len(loads), mp_context=context) as pool:
        return list(pool.map(drive, loads))
