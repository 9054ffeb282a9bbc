"""A server that answers at once and does nothing, to measure a load driver with.

    python -m slipway.benchmarking.idle_server [--delay-milliseconds N]

It prints its port and serves until it is ended. It understands just enough HTTP for clients that
send one request at a time with a Content-Length. Little of the measured time is therefore its own.
"""

import argparse
import asyncio
import re
from functools import partial
from typing import cast

import uvloop

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_END_OF_HEADERS = b"\r\n\r\n"
ANSWER = b"{}"
_RESPONSE = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
) % (len(ANSWER), ANSWER)


class _Connection(asyncio.Protocol):
    """Answers each request a fixed time after all of it is there; 0 answers at once."""

    def __init__(self, delay_seconds: float) -> None:
        self._delay_seconds = delay_seconds
        self._received = bytearray()
        self._transport: asyncio.WriteTransport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are of no class of asyncio's.
        self._transport = cast("asyncio.WriteTransport", transport)

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, separator, body = self._received.partition(_END_OF_HEADERS)
        length = _LENGTH.search(head)
        if separator and len(body) >= (int(length[1]) if length else 0):
            self._received.clear()
            loop = asyncio.get_running_loop()
            loop.call_later(self._delay_seconds, self._transport.write, _RESPONSE)


async def _serve(delay_seconds: float) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(partial(_Connection, delay_seconds), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m slipway.benchmarking.idle_server")
    parser.add_argument("--delay-milliseconds", type=float, default=0.0)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(parser.parse_args().delay_milliseconds / 1000))
