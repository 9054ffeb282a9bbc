"""The memory guard: refuses a request before the kernel would kill the process.

It has two rules. First, the bodies that are being received or parsed share a budget of bytes.
Without it, 500 clients with 6 MB each would need 3 GB before the queue sees the first body. Second,
requests are admitted one at a time while the process takes nearly all of its memory. Refusing all
of them would put the endpoint out of service for good if an allocator keeps freed memory.
"""

import os
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from starlette.requests import Request

from containers.serving.errors import MemoryShortError, RequestTooLargeError, ServingError

# cgroup v2, then v1. (https://docs.kernel.org/admin-guide/cgroup-v2.html#memory-interface-files)
_LIMIT_FILES: Final = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
_STATM_FILE: Final = "/proc/self/statm"
_STATM_MAX_BYTES: Final = 256

# The rest is left for requests in flight, whose memory still grows.
_SHARE_OF_LIMIT: Final = 0.95
_BUFFER_SHARE_OF_LIMIT: Final = 8
_LARGEST_DEFAULT_BUFFER_BYTES: Final = 512 * 1024**2
# Reading a refused body costs no memory; this limit bounds the time.
_DISCARD_FACTOR: Final = 10


def memory_limit_bytes(files: Iterable[Path] = _LIMIT_FILES) -> int:
    """Returns the container's memory limit, or the machine's memory if there is no limit."""
    limit = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for path in files:
        try:
            text = path.read_text("ascii").strip()
        except OSError:  # the other version of cgroups, or none
            continue
        if text.isdigit():  # "max" is no limit
            limit = min(limit, int(text))
    return limit


def default_buffer_bytes(limit_bytes: int, max_request_bytes: int) -> int:
    """Returns the budget for all bodies: an eighth of the memory and at most 512 MiB.

    The budget always has room for one body of the largest size.
    """
    share = limit_bytes // _BUFFER_SHARE_OF_LIMIT
    return max(max_request_bytes, min(share, _LARGEST_DEFAULT_BUFFER_BYTES))


class ProcessMemory:
    """The memory of the process that the kernel cannot reclaim.

    Pages of files are not counted: the kernel can drop the pages of a model that is mapped from its
    file.
    """

    def __init__(self) -> None:
        try:
            self._statm: int | None = os.open(_STATM_FILE, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:  # not Linux
            self._statm = None
        self._page_bytes = os.sysconf("SC_PAGE_SIZE")

    def read_bytes(self) -> int:
        """Returns the size, in some microseconds, or 0 if the system does not report it."""
        if self._statm is None:
            return 0
        # size, resident, shared (files and shared memory), ... in pages: see proc(5).
        fields = os.pread(self._statm, _STATM_MAX_BYTES, 0).split()
        return (int(fields[1]) - int(fields[2])) * self._page_bytes

    def close(self) -> None:
        if self._statm is not None:
            os.close(self._statm)
            self._statm = None


class MemoryGuard:
    """Decides whether there is memory for one more request.

    `read_process_bytes` returns the memory of the process now; 0 if it is unknown.
    """

    def __init__(
        self, *, max_buffered_bytes: int, limit_bytes: int, read_process_bytes: Callable[[], int]
    ) -> None:
        self.max_buffered_bytes = max_buffered_bytes
        self.most_bytes = int(limit_bytes * _SHARE_OF_LIMIT)
        self.read_process_bytes = read_process_bytes
        self.buffered_bytes = 0

    @classmethod
    def of(
        cls, memory: ProcessMemory, *, max_request_bytes: int, max_buffered_bytes: int | None = None
    ) -> "MemoryGuard":
        limit_bytes = memory_limit_bytes()
        default_bytes = default_buffer_bytes(limit_bytes, max_request_bytes)
        return cls(
            max_buffered_bytes=max_buffered_bytes or default_bytes,
            limit_bytes=limit_bytes,
            read_process_bytes=memory.read_bytes,
        )

    @contextmanager
    def body(self, others_in_flight: int) -> Generator["BodyReservation", None, None]:
        """Provides a reservation for one body, which is released when the block ends.

        `others_in_flight` counts the requests that are not answered yet, without this one.
        """
        reservation = BodyReservation(self, is_alone=not others_in_flight)
        try:
            yield reservation
        finally:
            reservation.release()


class BodyReservation:
    """The bytes that are reserved for one body.

    `is_alone` says that no other request is in flight; the memory of the process is then not
    checked.
    """

    def __init__(self, guard: MemoryGuard, *, is_alone: bool) -> None:
        self._guard = guard
        self._is_checked = is_alone
        self._size_bytes = 0

    def grow_to(self, size_bytes: int) -> None:
        """Reserves the missing bytes of a total; raises `MemoryShortError` if there is no room."""
        guard = self._guard
        if not self._is_checked and guard.read_process_bytes() > guard.most_bytes:
            raise MemoryShortError("The server is short of memory; retry later.")
        self._is_checked = True
        missing_bytes = max(0, size_bytes - self._size_bytes)
        if guard.buffered_bytes + missing_bytes > guard.max_buffered_bytes:
            raise MemoryShortError(
                "The bodies of other requests take the memory that there is for them; retry later."
            )
        guard.buffered_bytes += missing_bytes
        self._size_bytes += missing_bytes

    def release(self) -> None:
        self._guard.buffered_bytes -= self._size_bytes
        self._size_bytes = 0


async def read_body(request: Request, max_bytes: int, reservation: BodyReservation) -> bytes:
    """Reads the body; a body that is refused is read and thrown away.

    A refused body is read up to `_DISCARD_FACTOR` times the limit, because most clients send
    everything before they read. A client that is cut off while it sends sees a reset connection
    instead of the answer. A client that sends still more is cut off. A client that waits to be
    asked (`Expect: 100-continue`) is not asked.

    `reservation` counts all bytes of a Content-Length at once. Raises `RequestTooLargeError`,
    `MemoryShortError`, or `ClientDisconnect` if the client closed the connection while sending.
    """
    declared_bytes = int(request.headers.get("content-length", "0"))
    refusal = _refusal(declared_bytes, max_bytes, reservation)
    most_bytes = _DISCARD_FACTOR * max_bytes
    waits_to_be_asked = request.headers.get("expect", "").lower() == "100-continue"
    if refusal is not None and (waits_to_be_asked or declared_bytes > most_bytes):
        raise refusal
    body = bytearray()
    received_bytes = 0
    async for chunk in request.stream():
        received_bytes += len(chunk)
        if refusal is None:
            refusal = _refusal(received_bytes, max_bytes, reservation)
        if refusal is None:
            body += chunk
        else:
            body.clear()
            if received_bytes > most_bytes:
                break
    if refusal is not None:
        raise refusal
    return bytes(body)


def _refusal(size_bytes: int, max_bytes: int, reservation: BodyReservation) -> ServingError | None:
    """Reserves memory for that many bytes of a body; returns the error if that fails."""
    try:
        if size_bytes > max_bytes:
            raise RequestTooLargeError(f"The body exceeds the limit of {max_bytes} bytes.")
        reservation.grow_to(size_bytes)
    except ServingError as error:
        reservation.release()
        return error
    return None
