"""Git repositories to test with."""

import subprocess
from pathlib import Path


def git(root: Path, *arguments: str) -> str:
    """Runs git in a folder, as nobody in particular; returns what it printed."""
    identity = ("-c", "user.name=n", "-c", "user.email=n@example.com")
    command = ["git", "-C", str(root), *identity, *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def make_repository(root: Path) -> None:
    git(root, "init", "--initial-branch=main")


def commit(root: Path) -> str:
    git(root, "add", "--all")
    git(root, "commit", "--allow-empty", "--message=change")
    return git(root, "rev-parse", "HEAD")
