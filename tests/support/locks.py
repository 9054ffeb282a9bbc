"""Reads lists of packages, and their locks."""

from pathlib import Path


def lines(path: Path) -> list[str]:
    return [
        line for line in path.read_text("utf-8").splitlines() if line and not line.startswith("#")
    ]


def locked(path: Path) -> dict[str, str]:
    return dict(line.split()[0].split("==") for line in lines(path) if "==" in line)
