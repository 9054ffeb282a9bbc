"""Reads the containers' Dockerfiles."""

from pathlib import Path

CONTAINERS = Path(__file__).parents[2] / "containers"


def instructions(family: str) -> list[tuple[str, str]]:
    lines = (CONTAINERS / family / "Dockerfile").read_text("utf-8").splitlines()
    code = "\n".join(line for line in lines if not line.startswith("#"))
    joined = code.replace("\\\n", " ").splitlines()
    return [(line.partition(" ")[0], line.partition(" ")[2].strip()) for line in joined if line]


def stage(family: str, target: str) -> list[tuple[str, str]]:
    """Returns the instructions of one stage, its `FROM` included."""
    found: list[tuple[str, str]] = []
    is_in_it = False
    for name, arguments in instructions(family):
        if name == "FROM":
            is_in_it = arguments.endswith(f" AS {target}")
        if is_in_it:
            found.append((name, arguments))
    return found
