"""Options of the whole test run."""

import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

pytest_plugins = [
    "tests.support.command_line",
    "tests.support.hangs",
    "tests.support.sizes",
    "tests.support.starts",
    "tests.support.summary",
    "tests.support.workers",
]

# A shell starts what runs in its background with SIGINT ignored, and the programs that tests
# interrupt would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Tests read what commands print, whatever the user's shell or the CI system asks for. The programs
# that tests start are thousands: each would compile Slipway anew if none kept what it compiled.
for name in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "PYTHONDONTWRITEBYTECODE"):
    os.environ.pop(name, None)
os.environ["NODE_OPTIONS"] = f'--require="{Path(__file__).with_name("support")}/hurried_cdk.cjs"'

# Tests that send hundreds of requests send thousands in a deep run, and with
# `--hypothesis-profile=deep`.
settings.register_profile("deep", settings.get_profile("default"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="write the golden files anew; review the diff"
    )


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--size") == "deep":
        settings.load_profile("deep")
