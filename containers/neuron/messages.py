"""The messages between the program and its workers, over one socket for each lane.

A message is a length, a header in JSON, and the bytes of its arrays one after the other. Nothing is
pickled, because the two ends may run different versions of Python and NumPy.

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


class ConnectionLostError(Exception):
    """The other end closed the connection, or does not follow the protocol."""


# Any: arrays of several dtypes.
@dataclass(frozen=True)
class Message:
    """One message.

    Attributes:
        kind: one of the constants above.
        text: reason of a failure, for human readers.
        arrays: arrays of int64 or float32, by name.
    """

    kind: str
    text: str = ""
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)


def send(connection: socket.socket, message: Message) -> None:
    """Sends a message.

    Raises:
        ConnectionLostError: the message was not sent within the socket's time-out.
    """
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
    try:
        connection.sendall(_LENGTH.pack(len(header)) + header)
        for array in arrays.values():
            if array.size:
                connection.sendall(array.data.cast("B"))
    except OSError as error:
        raise ConnectionLostError(str(error)) from error


def receive(connection: socket.socket) -> Message:
    """Waits for a message.

    Raises:
        ConnectionLostError: no whole message arrived within the socket's time-out.
    """
    (header_bytes,) = _LENGTH.unpack(_receive_bytes(connection, _LENGTH.size))
    if header_bytes > _LARGEST_HEADER_BYTES:
        raise ConnectionLostError(f"a header of {header_bytes} bytes")
    try:
        header = json.loads(bytes(_receive_bytes(connection, header_bytes)))
    except ValueError as error:
        raise ConnectionLostError(f"a header that is not JSON: {error}") from error
    arrays: dict[str, NDArray[Any]] = {}
    for name, dtype, shape in header["arrays"]:
        if dtype not in _DTYPES:
            raise ConnectionLostError(f"an array of {dtype}")
        size_bytes = math.prod(shape) * np.dtype(dtype).itemsize
        content = _receive_bytes(connection, size_bytes)
        arrays[name] = np.frombuffer(content, dtype=dtype).reshape(shape)
    return Message(header["kind"], header["text"], arrays)


def _receive_bytes(connection: socket.socket, count: int) -> bytearray:
    received = bytearray(count)
    view = memoryview(received)
    while view:
        try:
            size = connection.recv_into(view)
        except OSError as error:
            raise ConnectionLostError(str(error)) from error
        if not size:
            raise ConnectionLostError("the connection was closed")
        view = view[size:]
    return received
