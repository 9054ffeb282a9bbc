"""Copies of requests to shadow variants, sent beside the requests themselves."""

import threading
from collections.abc import Callable

# A slow shadow variant must not fill the memory. SageMaker names no limit of its own.
_MOST_AT_A_TIME = 64


class Copies:
    """Sends copies in threads of their own, so that no request waits for a copy.

    Args:
        most_at_a_time: copies without an answer; further copies are left out.
    """

    def __init__(self, most_at_a_time: int = _MOST_AT_A_TIME) -> None:
        self._free = threading.Semaphore(most_at_a_time)

    def send(self, copy: Callable[[], None]) -> bool:
        """Sends a copy, and returns at once.

        Args:
            copy: asks the shadow variant.

        Returns:
            Whether it is sent; not while too many have no answer.
        """
        if not self._free.acquire(blocking=False):
            return False

        def run() -> None:
            try:
                copy()
            finally:
                self._free.release()

        threading.Thread(target=run, name="shadow-copy", daemon=True).start()
        return True
