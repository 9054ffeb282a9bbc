"""Servers that a benchmark starts: waited for, and ended with all that they started."""

import os
import socket
import sys

import pytest

from benchmarks.errors import BenchmarkError
from benchmarks.processes import BackgroundProcess, accepts_connections, free_port

LIMIT_SECONDS = 30.0


def started(tmp_path, *command):
    return BackgroundProcess(command, tmp_path, {"PATH": os.defpath}, tmp_path / "log")


def test_it_is_waited_for_and_ended(tmp_path):
    process = started(tmp_path, "sh", "-c", "echo ready; echo and errors >&2; exec sleep 600")
    process.wait_until(lambda: "errors" in process.output(), LIMIT_SECONDS)
    assert process.output() == process.recent_output() + "\n" == "ready\nand errors\n"
    process.stop()
    process.stop()


def test_what_it_started_ends_with_it(tmp_path):
    # The child keeps the pipe open for as long as it lives.
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    process = started(tmp_path, "sh", "-c", "{ echo held; exec sleep 600; } > pipe & wait")
    process.wait_until(lambda: _read(reader) == b"held\n", LIMIT_SECONDS)
    process.stop()
    os.set_blocking(reader, True)
    # The end of the pipe: nobody holds it any more.
    assert os.read(reader, 100) == b""
    os.close(reader)


def _read(descriptor):
    try:
        return os.read(descriptor, 100)
    except BlockingIOError:
        return b""


def test_one_that_ends_is_reported_with_its_last_lines(tmp_path):
    code = "print(*range(100), sep='\\n'); raise SystemExit(3)"
    process = started(tmp_path, sys.executable, "-c", code)
    with pytest.raises(BenchmarkError) as caught:
        process.wait_until(lambda: False, LIMIT_SECONDS)
    message, *lines = str(caught.value).splitlines()
    assert message.endswith("ended with exit code 3")
    assert lines == [str(number) for number in range(70, 100)]
    process.stop()


def test_one_that_is_never_ready_is_reported(tmp_path):
    process = started(tmp_path, "sleep", "600")
    with pytest.raises(BenchmarkError, match=r"^`sleep 600` was not ready within 0\.1 seconds"):
        process.wait_until(lambda: False, 0.1)
    process.stop()


def test_a_free_port_is_free():
    port = free_port()
    assert not accepts_connections(port)
    with socket.create_server(("127.0.0.1", port)):
        assert accepts_connections(port)
