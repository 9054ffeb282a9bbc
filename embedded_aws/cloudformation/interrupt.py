"""Ends a stack operation early: the operation is cancelled, or the server stops."""

import threading

from slipway.embedded_aws.cloudformation.resources.base import InterruptedOperationError


class StoppedError(Exception):
    """The server is stopping: everything is left as it is."""


class Interrupt:
    """Ends the waits of one operation, because it is cancelled or because the server stops."""

    def __init__(self) -> None:
        self.event = threading.Event()
        self._stopping = False

    def cancel(self) -> None:
        """Makes the operation fail at its next step, so that it rolls back."""
        self.event.set()

    def stop(self) -> None:
        """Makes the operation end at its next step, whatever the state of the stack."""
        self._stopping = True
        self.event.set()

    def check(self) -> None:
        """Raises if the operation was cancelled or stopped."""
        if self._stopping:
            raise StoppedError
        if self.event.is_set():
            raise InterruptedOperationError

    def settle(self) -> None:
        """Clears a cancellation, so that the rollback can wait."""
        if self._stopping:
            raise StoppedError
        self.event.clear()
