"""The load driver: what it sends, what it counts, and how it fails."""

import socket
import subprocess
import sys
import threading
from http.server import HTTPServer, ThreadingHTTPServer

import pytest

from benchmarks.errors import BenchmarkError
from benchmarks.load import (
    LoadResult,
    LoadSpecification,
    drive,
    drive_from_own_process,
    drive_through,
)
from slipway.benchmarking.connections import LoadError
from tests.benchmarks.load_server import Answering, served, upper

PATIENCE_SECONDS = 10.0


def specification(**changed):
    given = {
        "bodies": ("a", "b", "c"),
        "clients": 1,
        "timeout_seconds": PATIENCE_SECONDS,
    }
    return LoadSpecification(**(given | changed))


def echo(body):
    return 200, body.upper()


def test_a_client_sends_the_bodies_in_turn_and_counts_after_its_warm_up():
    received = []

    def answer(body):
        received.append(body)
        return echo(body)

    with served(answer) as port:
        result = drive(port, specification(warm_up_requests=2, requests=3))
    assert received == [b"a", b"b", b"c", b"a", b"b"]
    [latencies] = result.latencies_seconds
    assert len(latencies) == 3
    assert all(seconds > 0 for seconds in latencies)
    # The client's own work between two requests is in the span and in no latency.
    assert result.spans_seconds[0] >= sum(latencies)
    assert result.answers == ((0, "A", 2), (1, "B", 2), (2, "C", 1))


def test_as_many_requests_are_under_way_as_there_are_clients():
    # Nobody is answered before three requests are there.
    together = threading.Barrier(3, timeout=PATIENCE_SECONDS)

    def answer(body):
        together.wait()
        return echo(body)

    with served(answer) as port:
        result = drive(port, specification(clients=3, requests=2, keep_up=False))
    assert [len(latencies) for latencies in result.latencies_seconds] == [2, 2, 2]


def test_a_client_that_has_enough_keeps_the_load_up_uncounted():
    slow_may_go = threading.Event()
    fast_answers = threading.Semaphore(0)

    def answer(body):
        if body == b"slow":
            # Only requests after the fast client's one that counts can let it go.
            assert all(fast_answers.acquire(timeout=PATIENCE_SECONDS) for _ in range(4))
            slow_may_go.set()
        else:
            fast_answers.release()
        return echo(body)

    with served(answer) as port:
        result = drive(port, specification(clients=2, bodies=("fast", "slow"), keep_up=True))
    assert slow_may_go.is_set()
    assert [len(latencies) for latencies in result.latencies_seconds] == [1, 1]
    counts = {body: count for _, body, count in result.answers}
    assert counts["FAST"] >= 4


def test_a_client_goes_on_for_the_seconds_it_was_given():
    with served(echo) as port:
        result = drive(port, specification(seconds=0.2))
    assert result.spans_seconds[0] >= 0.2
    # It stopped with the first request that ended after them.
    assert sum(result.latencies_seconds[0][:-1]) < 0.2


def test_requests_that_begin_in_the_seconds_of_the_warm_up_do_not_count():
    result = drive_through(lambda: Answering(upper), specification(warm_up_seconds=0.1))
    assert result.seconds >= 0.1 + result.spans_seconds[0]
    assert len(result.all_latencies_seconds) == 1
    answers = {(index, answer) for index, answer, _ in result.answers}
    assert answers == {(0, "A"), (1, "B"), (2, "C")}


def test_a_connection_that_fails_ends_the_load():
    class Closed(Answering):
        async def open(self):
            raise LoadError("no route")

    with pytest.raises(BenchmarkError, match=r"^no route$"):
        drive_through(lambda: Closed(upper), specification(clients=2))


def test_throughput_is_that_of_whole_cycles():
    # Two clients whose requests take 2 s each, started 1 s apart: one answer a second.
    result = LoadResult(((2.0, 2.0), (2.0, 2.0, 2.0)), (4.0, 6.0), (), 0.0, 7.0)
    assert result.requests_per_second == 1.0
    assert result.all_latencies_seconds == [2.0] * 5


def test_a_server_that_lets_clients_wait_is_not_faster_for_it():
    # Without threads one connection is served until it ends, and the others wait.
    with served(echo, HTTPServer) as port:
        result = drive(
            port, specification(clients=4, warm_up_requests=1, requests=5, keep_up=False)
        )
    assert result.answers_per_second == 4 * 6 / result.seconds
    # No two clients were measured at the same time.
    assert sum(result.spans_seconds) < result.seconds
    assert result.requests_per_second > 3 * result.answers_per_second


def test_another_status_ends_the_load_with_what_was_answered():
    def answer(body):
        return (200, b"") if body == b"a" else (503, b'{"error": "full"}')

    with (
        served(answer) as port,
        pytest.raises(
            BenchmarkError, match=r'^a request was answered with 503: {"error": "full"}$'
        ),
    ):
        drive(port, specification(clients=2, seconds=60))


def test_a_server_that_is_not_there_is_an_error():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        with pytest.raises(BenchmarkError, match="a request failed: ConnectionRefusedError"):
            drive(port, specification(clients=4))


def test_an_answer_that_comes_too_late_is_an_error():
    may_go = threading.Event()

    def answer(body):
        assert may_go.wait(PATIENCE_SECONDS)
        return echo(body)

    with served(answer) as port:
        try:
            with pytest.raises(BenchmarkError, match="a request failed: TimeoutError: timed out"):
                drive(port, specification(timeout_seconds=0.1))
        finally:
            may_go.set()


def test_it_runs_in_a_process_of_its_own():
    with served(echo) as port:
        result = drive_from_own_process(port, specification(clients=2, requests=2, keep_up=False))
        assert sum(count for *_, count in result.answers) == 4
        assert result.driver_processor_seconds > 0
        assert result.seconds >= max(result.spans_seconds)
        with pytest.raises(BenchmarkError, match="a request failed: ConnectionRefusedError"):
            drive_from_own_process(1, specification())


@pytest.fixture
def idle_server():
    process = subprocess.Popen(
        [sys.executable, "-m", "slipway.benchmarking.idle_server"],
        stdout=subprocess.PIPE,
        text=True,
    )
    yield int(process.stdout.readline())
    process.kill()
    process.communicate()


def test_the_idle_server_answers_bodies_of_any_size(idle_server):
    bodies = ("", "x", "x" * 1_000_000)
    result = drive(idle_server, specification(clients=3, bodies=bodies, requests=6))
    assert {answer for _, answer, _ in result.answers} == {"{}"}
    assert {index for index, *_ in result.answers} == {0, 1, 2}


def test_a_client_keeps_its_connection():
    opened = []

    class Counting(ThreadingHTTPServer):
        def get_request(self):
            opened.append(1)
            return super().get_request()

    with served(echo, Counting) as port:
        drive(port, specification(clients=2, requests=5))
    assert len(opened) == 2
