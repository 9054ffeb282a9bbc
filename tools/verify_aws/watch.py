"""What is seen while a command runs."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

Seen = TypeVar("Seen", bound=Hashable)


class Watch(Generic[Seen]):
    """Looks at something again and again, in a thread of its own, and once more at its end.

    The clients of `look` are made before, since boto3 makes none in threads.
    """

    def __init__(self, look: Callable[[], Seen], pause_seconds: float = 1.0) -> None:
        self._look = look
        self._pause_seconds = pause_seconds
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)
        self._begun = time.monotonic()
        self.seen: list[tuple[float, Seen]] = []
        """Each change of what is seen, with its seconds since the beginning."""
        self.counts = Counter[Seen]()

    def __enter__(self) -> "Watch[Seen]":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        is_last = False
        while True:
            try:
                value = self._look()
            except (BotoCoreError, ClientError):
                # Throttled, or not there for a moment: the next look sees it.
                pass
            else:
                self.counts[value] += 1
                if not self.seen or self.seen[-1][1] != value:
                    self.seen.append((time.monotonic() - self._begun, value))
            if is_last:
                return
            is_last = self._ended.wait(self._pause_seconds)
