"""What tests look at of a build."""

import os
from pathlib import Path
from typing import Any

from tests.embedded.builds.conftest import Account


def phases(build: dict[str, Any]) -> dict[str, str]:
    return {each["phaseType"]: each.get("phaseStatus", "") for each in build["phases"]}


def context(build: dict[str, Any], phase: str) -> tuple[str, str]:
    (found,) = [each for each in build["phases"] if each["phaseType"] == phase]
    (only,) = found["contexts"]
    return only["statusCode"], only["message"]


def output(account: Account, build: dict[str, Any]) -> list[str]:
    return [line for line in account.log(build) if not line.startswith("[Container] ")]


def is_alive(number: int) -> bool:
    """Returns whether a process runs."""
    try:
        os.kill(number, 0)
        state = Path(f"/proc/{number}/stat").read_text("utf-8").rpartition(")")[2].split()[0]
    except (ProcessLookupError, FileNotFoundError):
        return False
    return state != "Z"
