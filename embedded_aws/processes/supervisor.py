"""Runs one container's program, and ensures that it never outlives the embedded AWS.

This is a program of its own, started as `python -I -S supervisor.py GRACE_SECONDS COMMAND...`. Only
the embedded AWS holds the other end of the pipe on its standard input. End of file means "stop",
whether the server closed the pipe on purpose or was killed. To stop, the supervisor sends SIGTERM
to the program. GRACE_SECONDS later it sends SIGKILL to the program's process group, as SageMaker
stops a container. SIGUSR1 to the supervisor means "kill it now". A pipe works on Linux and macOS
alike. Linux's parent-death signal is bound to the thread that forked, and threads of the server
come and go. The supervisor exits with the program's status (128 + N for signal N).

It uses only the standard library and imports nothing of this package, so that it starts in
milliseconds.
"""

import contextlib
import ctypes
import os
import select
import signal
import sys
import time

_PR_SET_PDEATHSIG = 1
_COMMAND_NOT_RUN = 127
_HANDLED = (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)


def main(arguments: list[str]) -> int:
    """Runs the command until it or standard input ends; returns the exit status."""
    grace_seconds, command = float(arguments[0]), arguments[1:]
    # The program begins with this program's handlers. A SIGTERM that came before it has lost them
    # would be lost itself, and a stop would take all of GRACE_SECONDS: so it waits until then.
    signal.pthread_sigmask(signal.SIG_SETMASK, _HANDLED)
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_write, False)
    signal.set_wakeup_fd(wake_write)
    for number in _HANDLED:
        signal.signal(number, lambda *_: None)  # noop: the wake-up pipe carries the number
    supervisor = os.getpid()
    # Loaded before the fork: between fork and exec nothing should import.
    libc = ctypes.CDLL(None) if sys.platform == "linux" else None
    child = os.fork()
    if child == 0:
        _become(command, libc, supervisor)
    # The server blocks the signals that stop it, and blocked signals are inherited.
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    return _watch(child, wake_read, grace_seconds)


def _become(command: list[str], libc: ctypes.CDLL | None, supervisor: int) -> None:
    """Turns the forked process into the container's program; never returns."""
    try:
        signal.set_wakeup_fd(-1)
        for number in (*_HANDLED, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        # A process group of its own, so that workers which the program forks can be killed with it.
        os.setsid()
        if libc is not None:
            libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if os.getppid() != supervisor:
                os._exit(_COMMAND_NOT_RUN)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.execvp(command[0], command)  # noqa: S606  # the command comes from the program table
    except OSError as error:
        os.write(2, f"cannot run {command[0]}: {error}\n".encode())
    os._exit(_COMMAND_NOT_RUN)


def _watch(child: int, wake_read: int, grace_seconds: float) -> int:
    kill_at: float | None = None
    killed = False
    watched = [0, wake_read]
    while True:
        waited, status = os.waitpid(child, os.WNOHANG)
        if waited == child:
            # As when a container's first process ends: its descendants are killed with it.
            _signal_group(child, signal.SIGKILL)
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code
        timeout = None
        if kill_at is not None and not killed:
            timeout = kill_at - time.monotonic()
            if timeout <= 0:
                _kill(child)
                killed = True
                timeout = None
        readable, _, _ = select.select(watched, [], [], timeout)
        stop = False
        if wake_read in readable:
            numbers = os.read(wake_read, 64)
            stop = signal.SIGTERM in numbers or signal.SIGINT in numbers
            if signal.SIGUSR1 in numbers:
                _kill(child)
                killed = True
        if 0 in readable and not os.read(0, 64):
            watched.remove(0)
            stop = True
        if stop and kill_at is None:
            kill_at = time.monotonic() + grace_seconds
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGTERM)


def _kill(child: int) -> None:
    """Kills a child that was not waited for, with its group."""
    _signal_group(child, signal.SIGKILL)
    # Just after the fork it has no group of its own yet, and no descendants.
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)


def _signal_group(leader: int, number: signal.Signals) -> None:
    # PermissionError: macOS answers so if only a zombie is left in the group.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
