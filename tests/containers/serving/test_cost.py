"""The server's own work for a request is bounded, beside a bare server of the same run."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from benchmarks.load import LoadSpecification, drive
from benchmarks.processes import answers_ping
from tests.support.waiting import eventually

ROOT = Path(__file__).parents[3]
CLIENTS = 64
LOAD = LoadSpecification(['{"inputs": ["some text"]}'], CLIENTS, requests=12, keep_up=False)
ROUNDS = 5
# Before httptools and joined writes it was 2.7.
MOST_TIMES_THE_ECHO = 2.0


class Server:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.port = int(self._read())

    def processor_seconds(self) -> float:
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return float(self._read())

    def cost_milliseconds(self) -> float:
        """Returns the processor time of a request, over one load."""
        before = self.processor_seconds()
        answers = drive(self.port, LOAD).answers
        requests = sum(count for _, _, count in answers)
        return (self.processor_seconds() - before) / requests * 1000

    def _read(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()


@contextmanager
def server(kind: str) -> Iterator[Server]:
    with subprocess.Popen(
        [sys.executable, "-m", "tests.containers.serving.cost_program", kind],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield Server(process)
        finally:
            process.kill()


@pytest.mark.size("all")
def test_a_request_costs_little_more_than_with_a_bare_server() -> None:
    with server("slipway") as slipway, server("echo") as echo:
        eventually(lambda: answers_ping(slipway.port))
        # In turn, so that a busy machine slows both. The least of each is the least disturbed.
        costs = [(slipway.cost_milliseconds(), echo.cost_milliseconds()) for _ in range(ROUNDS)]
    ours, theirs = (min(each) for each in zip(*costs, strict=True))
    print(f"{ours:.3f} ms and {theirs:.3f} ms of processor time a request: {ours / theirs:.2f}")
    assert ours <= MOST_TIMES_THE_ECHO * theirs
