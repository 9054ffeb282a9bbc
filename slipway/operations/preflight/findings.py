"""What a check of preflight found."""

from collections.abc import Iterable
from typing import TypeAlias

from slipway.codes.code import Code
from slipway.errors import Kind, Problem

Finding: TypeAlias = str | Problem
"""A line about something in order, or about something that could not be checked; or a problem."""


def parted(findings: Iterable[Finding]) -> tuple[list[str], list[Problem]]:
    lines: list[str] = []
    problems: list[Problem] = []
    for finding in findings:
        if isinstance(finding, Problem):
            problems.append(finding)
        else:
            lines.append(finding)
    return lines, problems


def wrong(code: Code, message: str, remedy: str) -> Problem:
    return Problem(code, Kind.STATE, message, remedy)
