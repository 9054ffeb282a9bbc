"""The shared parts of every result page: tables, and the circumstances of the measurement."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from benchmarks.machine import Commit, Machine

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    # Not imported at run time: it needs NumPy, which the load driver does without.
    from benchmarks.estimates import Estimate

MILLISECONDS = 1000
"""In a second."""
QUICK = (
    "A quick run, with small models and a few requests: it shows that everything works, no more."
)


@dataclass(frozen=True)
class Context:
    """The time, place and subject of a result.

    Args:
        started_at: in UTC.
        ended_at: in UTC.
        commit: the measured commit; None outside a repository.
        machine: the machine that it ran on.
        command: the command line that made the result; empty if the result names none.
    """

    started_at: datetime
    ended_at: datetime
    commit: Commit | None
    machine: Machine
    command: str = ""

    def as_json(self) -> dict[str, Any]:
        """Returns the first keys of a result's JSON document."""
        return {
            "started_at": self.started_at.isoformat(timespec="seconds"),
            "ended_at": self.ended_at.isoformat(timespec="seconds"),
            "commit": asdict(self.commit) if self.commit else None,
            "machine": asdict(self.machine),
            **({"command": self.command} if self.command else {}),
        }

    def as_list(self, *notes: str) -> str:
        """Returns the circumstances as the list at the end of a page, with `notes` as its end."""
        machine = self.machine
        versions = ", ".join(f"`{name} {version}`" for name, version in machine.versions.items())
        commit = "no commit"
        if self.commit:
            commit = f"commit {self.commit.id[:12]}"
            if self.commit.modified:
                commit += " with uncommitted changes"
        minutes = (self.ended_at - self.started_at).total_seconds() / 60
        command = f"`{self.command}`, " if self.command else ""
        circumstances = [
            f"Run: {command}{self.started_at:%Y-%m-%d %H:%M} UTC, {minutes:.0f} minutes, {commit}.",
            f"Machine: {machine.processor}, {machine.core_count} cores, "
            f"{machine.memory_bytes / 1e9:.1f} GB, {machine.system}.",
            f"Load average at the start: {machine.load_average:g}.",
            f"Versions: {versions}.",
        ]
        return items(*circumstances, *notes)


def picture(name: str, text: str) -> str:
    """Returns the Markdown of a plot that `make pictures` draws from the committed results.

    Args:
        name: of the file in docs/pictures, without the ending.
        text: what the plot shows, for readers who do not see it.
    """
    return f"![{text}](../../docs/pictures/{name}.svg)"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Returns a Markdown table: the first column is left-aligned, numbers are right-aligned."""
    rule = ["---", *("---:" for _ in header[1:])]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (header, rule, *rows))


def items(*texts: str) -> str:
    """Returns a Markdown list."""
    return "\n".join(f"- {text}" for text in texts)


def page(sections: Iterable[str]) -> str:
    """Returns a page of Markdown."""
    return "\n\n".join(sections) + "\n"


def counted(number: int, thing: str) -> str:
    """Returns a number with its noun, which gets an s unless the number is 1."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def capitalized(text: str) -> str:
    """Returns the text with a capital letter at its beginning."""
    return text[0].upper() + text[1:]


def significant(value: float) -> str:
    """Returns the number with three significant digits and no exponent."""
    digits = 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 1 else 3
    return f"{value:,.{digits}f}"


def milliseconds(seconds: float) -> float:
    """Returns a time for a JSON document."""
    return round(seconds * MILLISECONDS, 3)


def rounded(
    found: DataclassInstance, digits: int = 3, per_unit: float = 1
) -> dict[str, float | None]:
    """Returns a dataclass of numbers for a JSON document.

    Args:
        found: an estimate, a spread or a time; None stays None.
        digits: digits after the point.
        per_unit: factor of the shown unit.
    """
    return {
        name: None if value is None else round(value * per_unit, digits)
        for name, value in asdict(found).items()
    }


def interval_note(trials: int) -> str:
    """Returns which statistic the intervals of a page are, and what so many trials can show."""
    covered = 1 - 0.5 ** (trials - 1)
    return (
        "Intervals: percentile bootstrap of the medians, 95 %, over "
        f"{counted(trials, 'trial')} each. The range of so many trials covers the true median with "
        f"{covered:.0%}."
    )


def interval(found: Estimate, per_unit: float = 1) -> str:
    """Returns the interval of an estimate; `per_unit` is the factor of the shown unit."""
    if found.low is None or found.high is None:
        return "one trial"
    return f"{found.low * per_unit:.2f} to {found.high * per_unit:.2f}"
