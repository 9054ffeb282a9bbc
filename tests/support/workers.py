"""One pytest worker a core, each with its share of the machine, the longest test files first."""

import gc
import json
import os
import resource
from pathlib import Path

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

# The seconds of each test file in the last measured run; `python -m tools.suite_times` writes it.
SECONDS = Path(__file__).parents[1] / "seconds.json"

# Files whose tests take a minute each and share nothing: workers share them.
DIVIDED = ("tests/docs/test_guides.py", "tests/docs/test_tutorials.py")

# What a worker's tests and the programs that they start take together, at most.
WORKER_GIB = 4
# A process that asks for more has gone wrong: it gets an error and not the memory of the others.
PROCESS_GIB = 12

# Python looks for garbage after so many new objects, instead of 700. A test process has millions of
# objects that stay, and would spend a tenth of its time on them.
GARBAGE_THRESHOLDS = (50_000, 20, 50)


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Returns one for each core that this process may use, and no more than memory allows."""
    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return max(1, min(_cores(), int(memory_gib // WORKER_GIB)))


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1  # macOS


class _Scheduling(LoadFileScheduling):
    def _split_scope(self, nodeid: str) -> str:
        return nodeid if nodeid.startswith(DIVIDED) else super()._split_scope(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> _Scheduling:
    return _Scheduling(config, log)


def pytest_configure(config: pytest.Config) -> None:
    gc.set_threshold(*GARBAGE_THRESHOLDS)
    if not hasattr(config, "workerinput"):
        return
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (PROCESS_GIB * 2**30, hard))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):
        # A long file that starts last keeps one core busy while the others wait.
        seconds = json.loads(SECONDS.read_text("utf-8"))
        items.sort(key=lambda item: -seconds.get(_file(item), 0.0))


def pytest_collection_finish() -> None:
    # The tests themselves, and the modules, stay to the end.
    gc.freeze()


def _file(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]
