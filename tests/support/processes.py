"""Killing processes as the kernel does, and seeing that they are gone. Reads /proc."""

import contextlib
import os
import signal
import subprocess
from pathlib import Path

from tests.support.waiting import eventually

_STATE, _PARENT, _SESSION = 0, 1, 3


def is_running(pid: int) -> bool:
    """Whether a process lives; one that only waits to be reaped does not."""
    return _status(pid)[_STATE] not in ("", "Z")


def children(pid: int) -> list[int]:
    return [other for other in _pids() if _status(other)[_PARENT] == str(pid)]


def kill_tree(process: subprocess.Popen[str]) -> None:
    """Ends the leader of a session and all that it started, at once, with SIGKILL.

    It may have ended before.
    """
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdout is not None:
        process.stdout.close()
    # Nothing may have left the group for one of its own and live on.
    eventually(lambda: not session(process.pid))


def session(leader: int) -> list[int]:
    return [pid for pid in _pids() if _status(pid)[_SESSION] == str(leader) and is_running(pid)]


def is_forgotten(leader: int) -> bool:
    """Whether a session has no process left, nor one that ended and was not waited for."""
    return all(_status(pid)[_SESSION] != str(leader) for pid in _pids())


def command_line(pid: int) -> list[str]:
    """A process's program and arguments; empty when it has ended."""
    try:
        content = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return []
    return content.decode(errors="replace").split("\0")[:-1]


def _pids() -> list[int]:
    return [int(folder.name) for folder in Path("/proc").glob("[0-9]*")]


def _status(pid: int) -> list[str]:
    """State, parent, process group and session, as proc(5) has them in `stat`."""
    try:
        # The second field, the program's name, is in brackets and may have anything in it.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ["", "", "", ""]
