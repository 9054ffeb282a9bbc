"""The clients of a load: threads with a connection each, which start together.

With at most a few dozen clients, a thread costs less per request than any asynchronous client, and
it waits only for the network.
"""

import contextlib
import http.client
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

from benchmarks.errors import BenchmarkError

_HOST = "127.0.0.1"
_PATH = "/invocations"
_CONNECT_SECONDS = 10.0
_LONGEST_MESSAGE_CHARACTERS = 500
Exchange = Callable[[bytes], bytes]
"""Sends a request's body; returns the answer's."""
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


@contextlib.contextmanager
def connected_to(port: int, timeout_seconds: float) -> Iterator[Exchange]:
    """Opens a connection to a server on the loopback interface; gives what sends a request.

    Raises:
        BenchmarkError: in the block, if a request is refused, timed out, or answered with another
            status than 200.
    """
    connection = http.client.HTTPConnection(_HOST, port, timeout=_CONNECT_SECONDS)
    headers = {"Content-Type": "application/json"}

    def exchange(body: bytes) -> bytes:
        connection.request("POST", _PATH, body, headers)
        response = connection.getresponse()
        answer = response.read()
        if response.status != http.HTTPStatus.OK:
            text = answer.decode("utf-8", "replace")[:_LONGEST_MESSAGE_CHARACTERS]
            raise BenchmarkError(f"a request was answered with {response.status}: {text}")
        return answer

    try:
        connection.connect()
        connection.sock.settimeout(timeout_seconds)
        # Where the server closes a connection after an answer, the next request opens another.
        connection.timeout = timeout_seconds
        yield exchange
    except (OSError, http.client.HTTPException) as error:
        raise BenchmarkError(f"a request failed: {type(error).__name__}: {error}") from None
    finally:
        connection.close()
