"""A worker's process as the program sees it: how it starts, and the lanes (connections) to it."""

import os
import signal
import socket
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from containers.neuron import messages
from containers.neuron.messages import ConnectionLostError, Message
from containers.neuron.placement import Placement

_STANDARD_ERROR = 2


@dataclass(frozen=True)
class WorkerCommand:
    """The command that starts a worker, and its time limits.

    The number of lanes and the sockets are added to the arguments, and the variables that name its
    cores to the environment. `lanes_ahead` batches wait in the worker, so that its cores are never
    idle while a batch travels. A worker that takes longer than the limit for a batch counts as
    dead.
    """

    arguments: Sequence[str]
    environment: Mapping[str, str]
    lanes: int
    start_timeout_seconds: float
    batch_timeout_seconds: float
    lanes_ahead: int = 0


class WorkerRefusedError(Exception):
    """A worker could not be started; the message says why."""


class WorkerProcess:
    """One process and its lanes."""

    def __init__(self, placement: Placement, command: WorkerCommand) -> None:
        self._start_timeout_seconds = command.start_timeout_seconds
        pairs = [socket.socketpair() for _ in range(command.lanes + command.lanes_ahead)]
        theirs = [pair[1] for pair in pairs]
        try:
            self.process = subprocess.Popen(  # noqa: S603  (a module of Slipway)
                [*command.arguments, str(command.lanes), *(str(end.fileno()) for end in theirs)],
                env=placement.environment(command.environment),
                # The pipe is never written to. The worker ends when it closes, and so with this
                # process.
                stdin=subprocess.PIPE,
                # A runtime may print anything, and the log on standard output must stay JSON.
                stdout=_STANDARD_ERROR,
                pass_fds=[end.fileno() for end in theirs],
            )
        except OSError:
            for pair in pairs:
                pair[0].close()
            raise
        finally:
            for end in theirs:
                end.close()
        self.lanes = [Lane(pair[0], self, command.batch_timeout_seconds) for pair in pairs]
        # The pool guards what follows. Lanes in use, in the order in which they were taken.
        self.taken: list[Lane] = []
        # Set once the process ends: a lane that is returned later must be closed.
        self.is_retired = False
        # The lanes whose batches it computed then. The other batches waited.
        self.suspects: frozenset[Lane] = frozenset()

    def until_ready(self) -> None:
        """Waits until the model is loaded; `WorkerRefusedError` if that fails or takes too long."""
        connection = self.lanes[0].connection
        connection.settimeout(self._start_timeout_seconds)
        try:
            message = messages.receive(connection)
        except ConnectionLostError as error:
            if self.is_alive and isinstance(error.__cause__, TimeoutError):
                self.kill()
                raise WorkerRefusedError(
                    f"it did not load the model within {self._start_timeout_seconds:g} seconds"
                ) from error
            self.kill()
            raise WorkerRefusedError(
                f"it ended with {exit_reason(self.until_ended())} while it loaded the model; the "
                "log before this line has what the runtime wrote"
            ) from error
        if message.kind != messages.READY:
            raise WorkerRefusedError(message.text)

    @property
    def is_alive(self) -> bool:
        return self.process.poll() is None

    def kill(self) -> None:
        self.process.kill()

    def until_ended(self) -> int:
        exit_code = self.process.wait()
        if self.process.stdin is not None:
            self.process.stdin.close()
        return exit_code


class Lane:
    """A connection to a worker, for one batch at a time; `connection` is the program's end."""

    def __init__(
        self, connection: socket.socket, worker: WorkerProcess, timeout_seconds: float
    ) -> None:
        self.connection = connection
        self.worker = worker
        self._timeout_seconds = timeout_seconds

    # Any: int64.
    def exchange(self, arrays: Mapping[str, NDArray[Any]]) -> Message:
        """Sends a batch; returns the message with its outputs, or with the reason of a failure.

        Raises `ConnectionLostError` if the worker died, or does not answer. The cause of a time-out
        is a `TimeoutError`.
        """
        self.connection.settimeout(self._timeout_seconds)
        messages.send(self.connection, Message(messages.INPUTS, arrays=arrays))
        return messages.receive(self.connection)


def exit_reason(exit_code: int) -> str:
    if exit_code >= 0:
        return f"exit code {exit_code}"
    try:
        return f"signal {signal.Signals(-exit_code).name}"
    except ValueError:
        return f"signal {-exit_code}"


def processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
