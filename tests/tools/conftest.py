"""What the tests of several tools share."""

import signal
from pathlib import Path

import pytest


def program(folder: Path, name: str, body: str = "") -> Path:
    """Writes a program of the shell, which stands for one of the machine's."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n", "utf-8")
    path.chmod(0o755)
    return path


@pytest.fixture(autouse=True)
def handlers():
    """Gives the process its own signal handlers back, which a command may replace."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
