"""Reading a body: as much of it as is allowed, and keeping none of what is refused."""

from typing import Final

from starlette.requests import Request

from containers.serving.errors import RequestTooLargeError, ServingError
from containers.serving.memory import BodyReservation

# Reading what is refused costs no memory; this bounds the time.
_DISCARD_FACTOR: Final = 10


async def read_body(request: Request, max_bytes: int, reservation: BodyReservation) -> bytes:
    """Reads the body, and keeps none of it where it is refused.

    What is refused is read on and thrown away, up to `_DISCARD_FACTOR` times the limit: most
    clients send everything before they read, and one that is cut off while it sends sees a reset
    connection instead of the answer. One with more than that to send is cut off, and one that
    waits to be asked (`Expect: 100-continue`) is not asked.

    Args:
        request: its body was not read yet.
        max_bytes: largest body.
        reservation: counts its bytes; where the client says how many come, all of them at once.

    Raises:
        RequestTooLargeError: Content-Length, or what was received, exceeds `max_bytes`.
        MemoryShortError: there is no memory for it now.
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
    """Makes room for that much of a body; returns why there is none."""
    try:
        if size_bytes > max_bytes:
            raise RequestTooLargeError(f"The body exceeds the limit of {max_bytes} bytes.")
        reservation.grow_to(size_bytes)
    except ServingError as error:
        reservation.release()
        return error
    return None
