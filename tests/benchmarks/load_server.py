"""A server for the tests of the load driver."""

import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer

from slipway.benchmarking.connections import Reply


@contextmanager
def served(
    answer: Callable[[bytes], tuple[int, bytes]],
    kind: type[HTTPServer] = ThreadingHTTPServer,
    seen: Callable[[str, Mapping[str, str]], None] = lambda _path, _headers: None,
) -> Iterator[int]:
    """Serves a function of the body, in one thread for each connection; yields the port.

    Args:
        answer: returns status and body.
        kind: the server.
        seen: is called with the path and the headers of each request.
    """

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            seen(self.path, self.headers)
            status, content = answer(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    server = kind(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class Answering:
    """What a client sends through, without a server: a function of the request."""

    def __init__(self, answer: Callable[[bytes], Awaitable[bytes]]) -> None:
        self._answer = answer

    async def open(self) -> None:
        pass

    async def exchange(self, request: bytes) -> Reply:
        answered = await self._answer(request)
        return Reply(200, {}, [(time.perf_counter(), answered)])

    def close(self) -> None:
        pass


async def upper(request: bytes) -> bytes:
    return request.upper()
