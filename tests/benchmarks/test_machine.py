"""What a result says of the machine and the commit."""

import platform
import subprocess

import pytest

from benchmarks.machine import Commit, describe_commit, describe_machine


def git(folder, *arguments):
    identity = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
    command = ["git", "-C", str(folder), *identity, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_the_machine_is_described():
    machine = describe_machine(["python"], ["pytest"])
    assert machine.processor
    assert machine.core_count >= 1
    assert machine.memory_bytes > 100_000_000
    assert machine.load_average >= 0
    # This interpreter's programs are found first.
    assert machine.versions == {
        "python": f"Python {platform.python_version()}",
        "pytest": pytest.__version__,
    }


def test_a_commit_says_whether_the_tree_differs(tmp_path):
    assert describe_commit(tmp_path) is None
    git(tmp_path, "init", "--quiet")
    assert describe_commit(tmp_path) is None
    git(tmp_path, "commit", "--quiet", "--allow-empty", "--message", "first")
    identifier = git(tmp_path, "rev-parse", "HEAD")
    assert describe_commit(tmp_path) == Commit(identifier, modified=False)
    # The result of another benchmark, and its picture.
    for written in ("benchmarks/results/other.json", "docs/pictures/other.svg"):
        (tmp_path / written).parent.mkdir(parents=True)
        (tmp_path / written).touch()
    assert describe_commit(tmp_path) == Commit(identifier, modified=False)
    (tmp_path / "new").touch()
    assert describe_commit(tmp_path) == Commit(identifier, modified=True)
