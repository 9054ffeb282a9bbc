"""Runs a daemon for as long as a process uses it.

This is a program of its own, started as `python -I -S daemon.py FILE COMMAND...`. Every process
that uses the daemon holds a shared lock on the file. The kernel releases the lock when the process
ends, also when SIGKILL ends it. Once nobody holds the lock, the daemon gets SIGTERM.

It uses only the standard library and imports nothing of this package.
"""

import fcntl
import signal
import subprocess
import sys
import time

_POLL_SECONDS = 0.1
_STOP_SECONDS = 30.0


def main(arguments: list[str]) -> int:
    """Runs the command until it ends or nobody uses it; returns its exit status."""
    file, command = arguments[0], arguments[1:]
    # The process that starts this one may block the signals that stop it.
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    with open(file, "a", encoding="utf-8") as users:  # noqa: PTH123  # pathlib is slow to import
        daemon = subprocess.Popen(command, stdin=subprocess.DEVNULL)  # noqa: S603
        while daemon.poll() is None:
            try:
                # Held until this process ends: a process that wants the daemon again waits for it.
                fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(_POLL_SECONDS)
        daemon.terminate()
        try:
            return daemon.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            daemon.kill()
            return daemon.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
