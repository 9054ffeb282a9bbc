"""The commands of `make verify-aws`: none outlives the run, and each that fails says why."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from benchmarks.program import stop_on_signals
from tests.support.waiting import eventually
from tools.verify_aws.commands import CommandError, commands_of


def test_a_command_that_fails_shows_its_last_lines(tmp_path):
    run = commands_of(tmp_path, tmp_path / "log", region="eu-west-1")
    script = "import os, sys; print(os.environ['AWS_REGION']); sys.exit('this is why')"
    with pytest.raises(CommandError) as caught:
        run(sys.executable, "-c", script, seconds=60)
    assert str(caught.value).endswith("ended with 1\n    eu-west-1\n    this is why")
    assert "this is why" in (tmp_path / "log").read_text()


def test_a_command_that_takes_too_long_is_ended_with_what_it_started(tmp_path):
    pid = tmp_path / "pid"
    script = f"sleep 600 & echo $! > {pid}; wait"
    run = commands_of(tmp_path, tmp_path / "log", region="eu-west-1")
    with pytest.raises(CommandError, match="did not end within 0 minutes"):
        run("sh", "-c", script, seconds=0.3)
    eventually(lambda: not Path(f"/proc/{pid.read_text().strip()}/cmdline").exists())


def test_an_interrupt_ends_the_command(tmp_path):
    started = tmp_path / "started"
    run = commands_of(tmp_path, tmp_path / "log", region="eu-west-1")

    def interrupt() -> None:
        eventually(started.exists)
        os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=interrupt)
    thread.start()
    stop_on_signals()
    with pytest.raises(KeyboardInterrupt):
        run("sh", "-c", f"touch {started}; echo began; sleep 600", seconds=60)
    thread.join()
    assert "began" in (tmp_path / "log").read_text()


def test_a_program_that_is_not_there_is_told(tmp_path):
    run = commands_of(tmp_path, tmp_path / "log", region="eu-west-1")
    with pytest.raises(CommandError, match="`no-such-program x` cannot be run: No such file"):
        run("no-such-program", "x", seconds=60)


def test_an_interrupt_while_a_command_starts_ends_that_command(tmp_path, monkeypatch):
    started: list[subprocess.Popen[str]] = []

    class Interrupted(subprocess.Popen[str]):
        def __init__(self, *arguments: Any, **keywords: Any) -> None:
            super().__init__(*arguments, **keywords)
            started.append(self)
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(subprocess, "Popen", Interrupted)
    run = commands_of(tmp_path, tmp_path / "log", region="eu-west-1")
    with pytest.raises(KeyboardInterrupt):
        run("sleep", "600", seconds=60)
    (process,) = started
    assert process.returncode == -signal.SIGKILL
