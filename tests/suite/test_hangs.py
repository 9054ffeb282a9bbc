"""A test that no timeout can end costs a run minutes, and not its whole time."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = """
import threading

import pytest

def wait_for_ever():
    while True:
        try:
            threading.Event().wait()
        except BaseException:
            pass

@pytest.fixture
def cleaning():
    yield
    wait_for_ever()

def test_fine(): pass

def test_hangs_in_its_{place}{cleaning}:
    {body}
"""


@pytest.mark.parametrize(
    ("place", "cleaning", "body"),
    [
        ("body", "()", "wait_for_ever()"),
        ("cleanup", "(cleaning)", "pass"),
        # A failure stops pytest-timeout's clock.
        ("cleanup_after_a_failure", "(cleaning)", "assert False"),
    ],
)
def test_a_hanging_test_is_named_with_its_stack_and_ends_the_run(
    tmp_path: Path, place: str, cleaning: str, body: str
) -> None:
    module = tmp_path / "test_it.py"
    module.write_text(TESTS.format(place=place, cleaning=cleaning, body=body))
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "test_other.py").write_text("def test_other(): pass\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\ntimeout = 0.3\nseconds_after_timeout = 0.3\n")
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "tests.support.hangs", "-p", "no:randomly",
         "-p", "no:cacheprovider", "--import-mode=importlib", "--dist", "loadfile", "-n", "2",
         "--max-worker-restart", "0", str(tmp_path)],
        cwd=tmp_path, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert ended.returncode in (1, 2), ended.stderr
    assert f"crashed while running 'test_it.py::test_hangs_in_its_{place}'" in ended.stdout
    assert "in wait_for_ever" in ended.stderr
    assert ended.stderr.startswith("Timeout (0:00:00.600000)!")
