"""One command: timed, or stopped with all that it started."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks.errors import BenchmarkError
from benchmarks.execution import run_timed
from tests.support.waiting import eventually

DEADLINE_SECONDS = 30.0
# A command whose own child would outlive it, as the CDK CLI's Python and Node processes could. The
# child holds a pipe open for as long as it lives.
PARENT = ("sh", "-c", "{ echo held; exec sleep 600; } > pipe & echo started; wait")


def python(code):
    return (sys.executable, "-c", code)


@pytest.fixture
def pipe(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    yield descriptor
    os.close(descriptor)


def await_bytes(pipe, expected):
    """Waits for what a pipe has next; nothing means that no process holds it."""

    def has_come():
        try:
            return os.read(pipe, 100) == expected
        except BlockingIOError:
            return False

    eventually(has_come, DEADLINE_SECONDS)


def test_it_is_timed_and_its_output_kept(tmp_path):
    code = (
        "import os, sys, time\n"
        "started = time.process_time()\n"
        "while time.process_time() < started + 0.2: pass\n"
        "print(os.getcwd(), os.environ['COLOUR'], flush=True)\n"
        "print('and errors', file=sys.stderr)"
    )
    before = time.monotonic()
    timing, output = run_timed(python(code), tmp_path, {"COLOUR": "green"})
    elapsed = time.monotonic() - before
    assert output == f"{tmp_path} green\nand errors\n"
    assert 0.2 <= timing.seconds <= elapsed
    assert timing.processor_seconds >= 0.2


def test_a_failure_ends_with_its_output(tmp_path):
    with pytest.raises(BenchmarkError) as caught:
        run_timed(("sh", "-c", "echo no such stack; exit 3"), tmp_path, os.environ)
    assert str(caught.value) == (
        "`sh -c 'echo no such stack; exit 3'` ended with exit code 3\nno such stack\n"
    )


def test_a_program_that_is_not_there_is_named(tmp_path):
    with pytest.raises(BenchmarkError, match=r"^`nowhere x` cannot be run: No such file"):
        run_timed(("nowhere", "x"), tmp_path, {"PATH": str(tmp_path)})


def test_what_takes_too_long_ends_with_its_output(tmp_path):
    command = ("sh", "-c", "echo started; exec sleep 600")
    with pytest.raises(BenchmarkError, match=r"did not end within 1 seconds\nstarted"):
        run_timed(command, tmp_path, os.environ, limit_seconds=1)


def test_an_interrupted_run_leaves_no_process(tmp_path, pipe):
    code = (
        "import os, pathlib, signal\n"
        "from benchmarks.execution import run_timed\n"
        # A shell's background job is born with it ignored.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        f"run_timed({PARENT!r}, pathlib.Path({str(tmp_path)!r}), os.environ)"
    )
    root = Path(__file__).resolve().parents[2]
    with subprocess.Popen(python(code), cwd=root, stderr=subprocess.PIPE) as process:
        await_bytes(pipe, b"held\n")
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=DEADLINE_SECONDS)
    assert b"KeyboardInterrupt" in errors
    await_bytes(pipe, b"")


def test_an_interrupt_while_a_command_starts_leaves_no_process(tmp_path, pipe, monkeypatch):
    start = subprocess.Popen

    def interrupted(*arguments, **options):
        process = start(*arguments, **options)
        await_bytes(pipe, b"held\n")
        signal.raise_signal(signal.SIGINT)
        return process

    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    monkeypatch.setattr(subprocess, "Popen", interrupted)
    try:
        with pytest.raises(KeyboardInterrupt):
            run_timed(PARENT, tmp_path, os.environ)
    finally:
        signal.signal(signal.SIGINT, handler)
    await_bytes(pipe, b"")
