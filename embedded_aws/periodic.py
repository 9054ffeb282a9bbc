"""Work that is done again and again, in a thread of its own."""

import threading
from collections.abc import Callable


class Periodic:
    """Calls a function again and again, after a pause before each call, until it is closed."""

    def __init__(self, work: Callable[[], None], interval_seconds: float, name: str) -> None:
        self._work = work
        self._interval_seconds = interval_seconds
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stops the thread, and waits for a call in progress."""
        self._closed.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._closed.wait(self._interval_seconds):
            self._work()
