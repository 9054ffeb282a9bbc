"""What the tests of several tools share."""

import signal

import pytest


@pytest.fixture(autouse=True)
def handlers():
    """Gives the process its own signal handlers back, which a command may replace."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
