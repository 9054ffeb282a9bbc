"""Changes that continue after their request was answered, each in a thread of its own."""

import threading
from collections.abc import Callable


class Background:
    """The changes in progress. Once `closing` is set, a change that waits must end."""

    def __init__(self) -> None:
        self.closing = threading.Event()
        self._threads: set[threading.Thread] = set()
        self._lock = threading.Lock()

    def start(self, work: Callable[[], None]) -> None:
        """Starts a change and returns at once."""

        def run() -> None:
            try:
                work()
            finally:
                with self._lock:
                    self._threads.discard(thread)

        thread = threading.Thread(target=run, name="hosting-change", daemon=True)
        with self._lock:
            self._threads.add(thread)
        thread.start()

    def join(self) -> None:
        """Waits until no change is in progress."""
        with self._lock:
            threads = list(self._threads)
        for thread in threads:
            thread.join()
