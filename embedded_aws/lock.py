"""The lock on a file that means that an embedded AWS runs in a directory.

Its process holds the lock until it ends for any reason. The lock, and not the process id in the
file, tells whether it runs.
"""

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

from slipway.embedded_aws.errors import LocalAwsError

LOCK_FILE = "lock"
_LOCK_SECONDS = 1.0
_POLL_SECONDS = 0.02


@contextlib.contextmanager
def held_lock(directory: Path) -> Iterator[None]:
    """Holds the lock until the process ends; raises LocalAwsError if another process holds it."""
    with (directory / LOCK_FILE).open("a") as file:
        # A status check also takes the lock briefly, so retry.
        deadline = time.monotonic() + _LOCK_SECONDS
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise LocalAwsError(
                        f"Another embedded AWS uses {directory}. Stop it, or choose another "
                        "directory."
                    ) from None
                time.sleep(_POLL_SECONDS)
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


def is_locked(directory: Path) -> bool:
    try:
        with (directory / LOCK_FILE).open("r+") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
            return False
    except FileNotFoundError:
        return False


def await_unlocked(directory: Path, seconds: float) -> bool:
    """Waits until no process holds the lock; returns whether that came in time."""
    deadline = time.monotonic() + seconds
    while is_locked(directory):
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_SECONDS)
    return True


def holder(directory: Path) -> str:
    """Returns the process id that the holder of the lock has written."""
    return (directory / LOCK_FILE).read_text()
