"""The bound of Triton's queue that each copy of the model keeps itself."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from containers.triton.backlog import Backlog, waiting_requests

PAGE = """\
# TYPE nv_inference_pending_request_count gauge
nv_inference_pending_request_count{model="other",version="1"} 9
nv_inference_pending_request_count{model="t5.small",version="1"} 7
"""


class Queue:
    """A length, a clock, and a count of the questions."""

    def __init__(self) -> None:
        self.length = 0
        self.now = 0.0
        self.questions = 0

    def read(self) -> int:
        self.questions += 1
        return self.length

    def backlog(self, *, max_length: int = 10, copies: int = 1) -> Backlog:
        return Backlog(self.read, max_length=max_length, copies=copies, clock=lambda: self.now)


def test_the_oldest_of_too_many_are_refused() -> None:
    queue = Queue()
    queue.length = 15
    backlog = queue.backlog()
    assert [backlog.refuse(3, is_full=True) for _ in range(3)] == [3, 2, 0]
    assert queue.questions == 1


def test_copies_share_the_refusals() -> None:
    queue = Queue()
    queue.length = 15
    both = [queue.backlog(copies=2) for _ in range(2)]
    assert [backlog.refuse(8, is_full=True) for backlog in both] == [3, 3]


def test_nothing_is_asked_while_nothing_waits() -> None:
    queue = Queue()
    queue.length = 99
    backlog = queue.backlog()
    assert backlog.refuse(1, is_full=False) == 0
    assert queue.questions == 0


def test_it_asks_again_after_a_tenth_of_a_second() -> None:
    queue = Queue()
    backlog = queue.backlog()
    assert backlog.refuse(4, is_full=True) == 0
    queue.length = 12
    queue.now = 0.05
    assert backlog.refuse(4, is_full=True) == 0
    queue.now = 0.11
    assert backlog.refuse(4, is_full=True) == 2


def test_an_empty_queue_forgets_the_refusals() -> None:
    queue = Queue()
    queue.length = 30
    backlog = queue.backlog()
    assert backlog.refuse(4, is_full=True) == 4
    assert backlog.refuse(4, is_full=False) == 0
    assert backlog.refuse(4, is_full=True) == 0


@pytest.fixture
def metrics() -> Iterator[int]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(PAGE.encode())

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


def test_the_length_is_of_the_own_model(metrics: int) -> None:
    assert waiting_requests(metrics, "t5.small") == 7
    with pytest.raises(LookupError, match="of t5xsmall"):
        waiting_requests(metrics, "t5xsmall")


def test_before_the_metrics_are_served_nothing_waits() -> None:
    with HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as closed:
        port = closed.server_port
    assert waiting_requests(port, "t5.small") == 0
