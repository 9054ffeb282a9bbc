"""The messages between the program and its workers, over one socket for each lane.

A message is a length, a header in JSON, and the bytes of its arrays one after the other. Nothing is
pickled, because the two ends may run different versions of Python and NumPy. A message of usual
size is one system call at either end. Each call gives up Python's lock to other threads, and waits
to get it back.

A worker imports this: it keeps to Python 3.10 and NumPy.
"""

import json
import math
import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

# Kinds of message that a worker sends.
READY: Final = "ready"
REFUSED: Final = "refused"
OUTPUTS: Final = "outputs"
FAILED: Final = "failed"
# Kinds of message that the program sends.
INPUTS: Final = "inputs"

_LENGTH: Final = struct.Struct("!Q")
_LARGEST_HEADER_BYTES: Final = 1_000_000
_DTYPES: Final = ("<i8", "<f4")
# Most messages fit.
_FIRST_BYTES: Final = 65_536
# Arrays begin at a multiple of this many bytes.
_ALIGNMENT_BYTES: Final = 8


class ConnectionLostError(Exception):
    """The other end closed the connection, or does not follow the protocol."""


# Any: arrays of several dtypes.
@dataclass(frozen=True)
class Message:
    """One message: its kind, the reason of a failure, and arrays of int64 or float32."""

    kind: str
    text: str = ""
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)


def send(connection: socket.socket, message: Message) -> None:
    """Sends a message; `ConnectionLostError` if that takes longer than the socket's time-out."""
    arrays = {
        name: np.ascontiguousarray(array, dtype="<i8" if array.dtype.kind == "i" else "<f4")
        for name, array in message.arrays.items()
    }
    header = json.dumps(
        {
            "kind": message.kind,
            "text": message.text,
            "arrays": [
                [name, array.dtype.str, list(array.shape)] for name, array in arrays.items()
            ],
        }
    ).encode()
    header += b" " * (-len(header) % _ALIGNMENT_BYTES)
    parts: list[bytes | memoryview] = [_LENGTH.pack(len(header)), header]
    parts += [array.data.cast("B") for array in arrays.values() if array.size]
    try:
        sent = connection.sendmsg(parts)
        if sent < sum(map(len, parts)):
            connection.sendall(b"".join(parts)[sent:])
    except OSError as error:
        raise ConnectionLostError(str(error)) from error


def receive(connection: socket.socket) -> Message:
    """Waits for a message; `ConnectionLostError` if none arrives within the socket's time-out."""
    received = _Received(connection)
    received.fill(_LENGTH.size)
    (header_bytes,) = _LENGTH.unpack_from(received.content)
    if header_bytes > _LARGEST_HEADER_BYTES:
        raise ConnectionLostError(f"a header of {header_bytes} bytes")
    end = _LENGTH.size + header_bytes
    received.fill(end)
    try:
        header = json.loads(received.content[_LENGTH.size : end])
    except ValueError as error:
        raise ConnectionLostError(f"a header that is not JSON: {error}") from error
    places: list[tuple[str, str, list[int], int]] = []
    for name, dtype, shape in header["arrays"]:
        if dtype not in _DTYPES:
            raise ConnectionLostError(f"an array of {dtype}")
        places.append((name, dtype, shape, end))
        end += math.prod(shape) * np.dtype(dtype).itemsize
    received.fill(end)
    if received.size > end:
        raise ConnectionLostError(f"{received.size - end} bytes behind a message")
    arrays = {
        name: np.frombuffer(received.content, dtype, math.prod(shape), place).reshape(shape)
        for name, dtype, shape, place in places
    }
    return Message(header["kind"], header["text"], arrays)


class _Received:
    """The beginning of a message, which grows as it arrives."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self.content = bytearray(_FIRST_BYTES)
        self.size = 0

    def fill(self, size: int) -> None:
        """Waits until the first `size` bytes of the message are there, or raises."""
        if size > len(self.content):
            larger = bytearray(size)
            larger[: self.size] = self.content[: self.size]
            self.content = larger
        view = memoryview(self.content)
        while self.size < size:
            try:
                count = self._connection.recv_into(view[self.size :])
            except OSError as error:
                raise ConnectionLostError(str(error)) from error
            if not count:
                raise ConnectionLostError("the connection was closed")
            self.size += count
