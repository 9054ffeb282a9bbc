"""The clients of a load: threads with a connection each, which start together.

With at most a few dozen clients, a thread costs less per request than any asynchronous client, and
it waits only for the network.
"""

import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager

from benchmarks.connections import Exchange
from benchmarks.errors import BenchmarkError

Connect = Callable[[], AbstractContextManager[Exchange]]


class Clients:
    """Threads that connect, start together, and end when one of them fails.

    Args:
        count: number of clients.
        connect: opens the connection of one client.
        begin: called once, when all clients are connected and before any of them starts.

    Attributes:
        failed: set when a client has failed; the others should end then.
    """

    def __init__(
        self, count: int, connect: Connect, begin: Callable[[], None] | None = None
    ) -> None:
        self._count, self._connect = count, connect
        self._start = threading.Barrier(count + 1, action=begin)
        self._lock = threading.Lock()
        self._failure = ""
        self.failed = threading.Event()

    def run(self, send: Callable[[int, Exchange], None]) -> float:
        """Runs all clients to their end; returns the processor time of this process meanwhile."""
        threads = [
            threading.Thread(target=self._run_client, args=(number, send), daemon=True)
            for number in range(self._count)
        ]
        for thread in threads:
            thread.start()
        used_before = time.process_time()
        try:
            self._start.wait()
        except threading.BrokenBarrierError:
            raise BenchmarkError(self._failure) from None
        for thread in threads:
            thread.join()
        used = time.process_time() - used_before
        if self._failure:
            raise BenchmarkError(self._failure)
        return used

    def _run_client(self, number: int, send: Callable[[int, Exchange], None]) -> None:
        try:
            with self._connect() as exchange:
                self._start.wait()
                send(number, exchange)
        except threading.BrokenBarrierError:
            pass
        except BenchmarkError as error:
            self._fail(str(error))
        # Whatever it is: a load that lacks a client unnoticed would measure something else.
        except Exception as error:
            self._fail(f"a request failed: {type(error).__name__}: {error}")

    def _fail(self, message: str) -> None:
        with self._lock:
            self._failure = self._failure or message
        self.failed.set()
        self._start.abort()
