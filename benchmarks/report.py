"""The shared parts of every result page: tables, and the circumstances of the measurement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from benchmarks.machine import Commit, Machine


@dataclass(frozen=True)
class Context:
    """The time, place and subject of a result.

    Args:
        started_at: in UTC.
        ended_at: in UTC.
        commit: the measured commit; None outside a repository.
        machine: the machine that it ran on.
    """

    started_at: datetime
    ended_at: datetime
    commit: Commit | None
    machine: Machine

    def as_json(self) -> dict[str, Any]:
        """Returns the first keys of a result's JSON document."""
        return {
            "started_at": self.started_at.isoformat(timespec="seconds"),
            "ended_at": self.ended_at.isoformat(timespec="seconds"),
            "commit": asdict(self.commit) if self.commit else None,
            "machine": asdict(self.machine),
        }

    def as_list(self, *notes: str, command: str = "") -> str:
        """Returns the circumstances as the list at the end of a page.

        Args:
            notes: further items, at the end of the list.
            command: the command line that made the result; empty if the page names none.
        """
        machine = self.machine
        versions = ", ".join(f"`{name} {version}`" for name, version in machine.versions.items())
        commit = "no commit"
        if self.commit:
            commit = f"commit {self.commit.id[:12]}"
            if self.commit.modified:
                commit += " with uncommitted changes"
        minutes = (self.ended_at - self.started_at).total_seconds() / 60
        items = [
            f"Run: {f'`{command}`, ' if command else ''}{self.started_at:%Y-%m-%d %H:%M} UTC, "
            f"{minutes:.0f} minutes, {commit}.",
            f"Machine: {machine.processor}, {machine.core_count} cores, "
            f"{machine.memory_bytes / 1e9:.1f} GB, {machine.system}.",
            f"Load average at the start: {machine.load_average:g}.",
            f"Versions: {versions}.",
            *notes,
        ]
        return "\n".join(f"- {item}" for item in items)


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
