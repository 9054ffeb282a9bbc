"""Clients that ask until they are stopped, and count how they were answered."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable


class Clients:
    """Asks in several threads. Use as a context manager.

    Entering waits for the first answer, and leaving for the last, so that the block meets requests
    from its beginning to its end. `ask` returns a request's answer or the code of its error.
    """

    def __init__(
        self, ask: Callable[[], str], *, threads: int = 1, pause_seconds: float = 0.0
    ) -> None:
        self._ask = ask
        self._pause_seconds = pause_seconds
        self._begun, self._stopped = threading.Event(), threading.Event()
        self._lock = threading.Lock()
        self.answers: Counter[str] = Counter()
        self._threads = [threading.Thread(target=self._run) for _ in range(threads)]

    def __enter__(self) -> Clients:
        for thread in self._threads:
            thread.start()
        assert self._begun.wait(30)
        return self

    def __exit__(self, *exception: object) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(self._pause_seconds):
            answer = self._ask()
            with self._lock:
                self.answers[answer] += 1
            self._begun.set()
