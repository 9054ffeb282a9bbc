"""The framing of AWS's event streams: the answer of InvokeEndpointWithResponseStream.

A message is its length, the length of its headers, a CRC of these eight bytes, headers, payload,
and a CRC of everything before. Whole numbers are big-endian.
(https://smithy.io/2.0/aws/amazon-eventstream.html)
"""

import json
import struct
import zlib
from collections.abc import Mapping

_STRING = 7
_PRELUDE_BYTES = 12
_CRC_BYTES = 4


def event(name: str, payload: bytes) -> bytes:
    """Returns a message with a part of the answer."""
    headers = {
        ":event-type": name,
        ":content-type": "application/octet-stream",
        ":message-type": "event",
    }
    return _message(headers, payload)


def exception(name: str, members: Mapping[str, str]) -> bytes:
    """Returns a message with the error that ends the stream."""
    headers = {
        ":exception-type": name,
        ":content-type": "application/json",
        ":message-type": "exception",
    }
    return _message(headers, json.dumps(members).encode())


def _message(headers: Mapping[str, str], payload: bytes) -> bytes:
    encoded = b"".join(
        struct.pack(f">B{len(name)}sBH{len(value)}s", len(name), name, _STRING, len(value), value)
        for name, value in ((key.encode(), text.encode()) for key, text in headers.items())
    )
    length = _PRELUDE_BYTES + len(encoded) + len(payload) + _CRC_BYTES
    prelude = struct.pack(">II", length, len(encoded))
    message = prelude + struct.pack(">I", zlib.crc32(prelude)) + encoded + payload
    return message + struct.pack(">I", zlib.crc32(message))
