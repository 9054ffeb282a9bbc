"""Kept-alive HTTP connections to one container: its health check and its invocations."""

import contextlib
import http.client
import threading
import time
from collections.abc import Callable, Iterator, Mapping

# A container may close a connection that idled longer just as a request goes out. A request that
# may have been received must not be sent twice. Servers' own limits start at 2 s.
_MAX_IDLE_SECONDS = 1.0
_READ_BYTES = 1 << 16
# Longer than an engine takes to load an adapter.
_MANAGE_TIMEOUT_SECONDS = 60.0
_PING_TIMEOUT_SECONDS = 2.0  # SageMaker's, docs: "containers must respond within 2 seconds"


class ContainerTimeoutError(Exception):
    """The container did not answer in time."""


class ContainerUnreachableError(Exception):
    """The container refused or dropped the connection, or spoke no HTTP."""


class ContainerRefusedError(ContainerUnreachableError):
    """The container accepted no connection, so it has not received the request."""


class ContainerStream:
    """An answer that is read as it arrives; the names of its headers are in lower case."""

    def __init__(
        self,
        connection: http.client.HTTPConnection,
        response: http.client.HTTPResponse,
        deadline: float,
        put_back: Callable[[http.client.HTTPConnection], None],
    ) -> None:
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self._connection = connection
        self._response = response
        self._deadline = deadline
        self._put_back = put_back
        self._is_whole = False

    def chunks(self) -> Iterator[bytes]:
        """Yields the body; raises `ContainerTimeoutError` or `ContainerUnreachableError`."""
        with _named_errors():
            while chunk := self._response.read1(_READ_BYTES):
                yield chunk
                remaining = self._deadline - time.monotonic()
                if remaining <= 0:
                    raise TimeoutError
                if self._connection.sock is not None:
                    self._connection.sock.settimeout(remaining)
            # read1 takes a connection that breaks for the end of a body of known length.
            if self._response.length:
                raise http.client.IncompleteRead(b"", self._response.length)
            self._is_whole = True

    def close(self) -> None:
        """Keeps the connection; closes an incomplete answer's, which tells the container."""
        self._response.close()  # read1 leaves a response of known length open
        if self._is_whole and not self._response.will_close:
            self._put_back(self._connection)
        else:
            self._connection.close()


@contextlib.contextmanager
def _named_errors() -> Iterator[None]:
    try:
        yield
    except TimeoutError:
        raise ContainerTimeoutError from None
    except (OSError, http.client.HTTPException) as error:
        raise ContainerUnreachableError(str(error) or type(error).__name__) from error


def _connect(connection: http.client.HTTPConnection) -> None:
    try:
        connection.connect()
    except ConnectionRefusedError as error:
        raise ContainerRefusedError(str(error)) from error


class ContainerConnections:
    def __init__(self, port: int) -> None:
        self._port = port
        self._idle: list[tuple[float, http.client.HTTPConnection]] = []
        self._closed = False
        self._lock = threading.Lock()

    def is_healthy(self) -> bool:
        """Returns whether GET /ping answers 200 within SageMaker's 2 seconds."""
        connection = http.client.HTTPConnection(
            "127.0.0.1", self._port, timeout=_PING_TIMEOUT_SECONDS
        )
        try:
            connection.request("GET", "/ping")
            return connection.getresponse().status == http.HTTPStatus.OK
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def manage(self, method: str, path: str) -> tuple[int, str]:
        """Asks the management API; raises `ContainerUnreachableError` without an answer."""
        connection = http.client.HTTPConnection(
            "127.0.0.1", self._port, timeout=_MANAGE_TIMEOUT_SECONDS
        )
        try:
            with _named_errors():
                connection.request(method, path)
                response = connection.getresponse()
                return response.status, response.read().decode(errors="replace").strip()
        except ContainerTimeoutError:
            raise ContainerUnreachableError("no answer in time") from None
        finally:
            connection.close()

    def open(
        self, body: bytes, headers: Mapping[str, str], *, timeout_seconds: float
    ) -> ContainerStream:
        """Sends POST /invocations once; returns the answer's beginning, which must be closed.

        The time is for the whole answer, not only for its beginning. Raises
        `ContainerTimeoutError`, or `ContainerUnreachableError` if there is no answer at all.
        """
        deadline = time.monotonic() + timeout_seconds
        connection = self._take(timeout_seconds)
        try:
            with _named_errors():
                if connection.sock is None:
                    _connect(connection)
                connection.request("POST", "/invocations", body, dict(headers))
                response = connection.getresponse()
        except (ContainerTimeoutError, ContainerUnreachableError):
            connection.close()
            raise
        return ContainerStream(connection, response, deadline, self._put_back)

    def drop_idle(self) -> None:
        """Closes the unused connections, because the container behind them is gone."""
        with self._lock:
            idle, self._idle = self._idle, []
        for _, connection in idle:
            connection.close()

    def close(self) -> None:
        """Closes all idle connections and keeps no others; a container must not wait for them."""
        with self._lock:
            self._closed = True
        self.drop_idle()

    def _take(self, timeout_seconds: float) -> http.client.HTTPConnection:
        too_old = time.monotonic() - _MAX_IDLE_SECONDS
        stale: list[http.client.HTTPConnection] = []
        found: http.client.HTTPConnection | None = None
        with self._lock:
            # The connection returned last is the freshest.
            if self._idle and self._idle[-1][0] >= too_old:
                found = self._idle.pop()[1]
            else:
                stale = [connection for _, connection in self._idle]
                self._idle.clear()
        for connection in stale:
            connection.close()
        if found is None:
            return http.client.HTTPConnection("127.0.0.1", self._port, timeout=timeout_seconds)
        if found.sock is not None:
            found.sock.settimeout(timeout_seconds)
        return found

    def _put_back(self, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            if not self._closed:
                self._idle.append((time.monotonic(), connection))
                return
        connection.close()
