"""Reads request bodies up to a size limit, and keeps no bytes of a refused body."""

from typing import Final

from starlette.requests import Request

from containers.serving.errors import RequestTooLargeError, ServingError
from containers.serving.memory import BodyReservation

# Reading a refused body costs no memory; this limit bounds the time.
_DISCARD_FACTOR: Final = 10


async def read_body(request: Request, max_bytes: int, reservation: BodyReservation) -> bytes:
    """Reads the body; a body that is refused is read and thrown away.

    A refused body is read up to `_DISCARD_FACTOR` times the limit, because most clients send
    everything before they read. A client that is cut off while it sends sees a reset connection
    instead of the answer. A client that sends still more is cut off. A client that waits to be
    asked (`Expect: 100-continue`) is not asked.

    Args:
        request: its body was not read yet.
        max_bytes: largest body.
        reservation: counts the body's bytes. If the client sent a Content-Length, all bytes are
            counted at once.

    Raises:
        RequestTooLargeError: Content-Length, or the body received, exceeds `max_bytes`.
        MemoryShortError: there is no memory for the body now.
        ClientDisconnect: the client closed the connection while sending.
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
