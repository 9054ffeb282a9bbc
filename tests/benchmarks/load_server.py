"""A server for the tests of the load driver."""

import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from slipway.benchmarking.connections import Reply


@contextmanager
def served(answer, kind=ThreadingHTTPServer, seen=lambda _path, _headers: None):
    """Serves a function of the body; yields the port, and tells `seen` the requests."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            seen(self.path, self.headers)
            status, content = answer(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
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

    def __init__(self, answer):
        self._answer = answer

    async def open(self):
        pass

    async def exchange(self, request):
        answered = await self._answer(request)
        return Reply(200, {}, [(time.perf_counter(), answered)])

    def close(self):
        pass


async def upper(request):
    return request.upper()
