"""The form of every result: a JSON document, and a page that is made of the document alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from benchmarks.machine import Commit, Machine

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

# Any: JSON.
Document: TypeAlias = Mapping[str, Any]

MILLISECONDS = 1000  # in a second
CLOSED_LOOP = (
    "The load is a closed loop: a client sends again after its answer. Stalls of a server are "
    "therefore rare in p95 and p99."
)
"""The note of every page whose loads are `benchmarks.load`'s."""
_MET = "met"


class Labelled(StrEnum):
    """Keys of a result, each with its name for readers."""

    label: str

    def __new__(cls, key: str, label: str = "") -> Self:
        member = str.__new__(cls, key)
        member._value_, member.label = key, label
        return member


@dataclass(frozen=True)
class Context:
    """The time, place and subject of a result; times are in UTC."""

    started_at: datetime
    ended_at: datetime
    commit: Commit | None
    machine: Machine
    command: str = ""

    @classmethod
    def of(cls, document: Document) -> Self:
        return cls(
            datetime.fromisoformat(document["started_at"]),
            datetime.fromisoformat(document["ended_at"]),
            Commit(**document["commit"]) if document["commit"] else None,
            Machine(**document["machine"]),
            document.get("command", ""),
        )

    def as_json(self) -> dict[str, Any]:
        return {
            "started_at": self.started_at.isoformat(timespec="seconds"),
            "ended_at": self.ended_at.isoformat(timespec="seconds"),
            "commit": asdict(self.commit) if self.commit else None,
            "machine": asdict(self.machine),
            **({"command": self.command} if self.command else {}),
        }

    def as_list(self, *notes: str) -> str:
        machine = self.machine
        versions = ", ".join(f"`{name} {version}`" for name, version in machine.versions.items())
        commit = "no commit"
        if self.commit:
            commit = f"commit {self.commit.id[:12]}"
            if self.commit.modified:
                commit += " with uncommitted changes"
        minutes = (self.ended_at - self.started_at).total_seconds() / 60
        command = f"`{self.command}`, " if self.command else ""
        return items(
            f"Run: {command}{self.started_at:%Y-%m-%d %H:%M} UTC, {minutes:.0f} minutes, {commit}.",
            f"Machine: {machine.processor}, {machine.core_count} cores, "
            f"{machine.memory_bytes / 1e9:.1f} GB, {machine.system}.",
            f"Load average at the start: {machine.load_average:g}.",
            f"Versions: {versions}.",
            *notes,
        )


def result_page(document: Document, title: str, sections: Iterable[str], *notes: str) -> str:
    quick = "A quick run: it shows that everything works, no more. Its figures mean nothing."
    return page(
        [
            f"# {title}",
            *([quick] if is_quick(document) else []),
            *sections,
            "## Circumstances",
            Context.of(document).as_list(
                *notes, "[What is measured, and how to read it](../README.md)."
            ),
        ]
    )


def is_quick(document: Document) -> bool:
    return bool(document["design"].get("is_quick"))


def picture(document: Document, name: str, text: str) -> list[str]:
    """Returns the Markdown of a plot, which `make pictures` draws of full runs alone."""
    return [] if is_quick(document) else [f"![{text}](../../docs/pictures/{name}.svg)"]


def goals_line(verdicts: Iterable[str]) -> str:
    counts = Counter(verdicts)
    others = ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if verdict != _MET)
    line = f"**{counts[_MET]} of {counts.total()} goals met.**"
    return f"{line} The others: {others}." if others else line


def estimated(found: Document) -> str:
    interval = "one trial"
    if found["low"] is not None:
        interval = f"{found['low']:.2f} to {found['high']:.2f}"
    return f"{found['value']:.2f} ({interval})"


def interval_note(trials: int) -> str:
    """Returns which statistic the intervals of a page are, and what so many trials can show."""
    return (
        "Intervals: percentile bootstrap of the medians, 95 %, over "
        f"{counted(trials, 'trial')} each. The range of so many trials covers the true median with "
        f"{covered(trials)}."
    )


def covered(trials: int) -> str:
    """Returns the probability that the true median is within the range of so many trials."""
    return f"{1 - 0.5 ** (trials - 1):.0%}"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    rule = ["---", *("---:" for _ in header[1:])]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (header, rule, *rows))


def items(*texts: str) -> str:
    return "\n".join(f"- {text}" for text in texts)


def page(sections: Iterable[str]) -> str:
    return "\n\n".join(sections) + "\n"


def counted(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def capitalized(text: str) -> str:
    return text[0].upper() + text[1:]


def significant(value: float) -> str:
    """Returns the number with three significant digits and no exponent."""
    digits = 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 1 else 3
    return f"{value:,.{digits}f}"


def milliseconds(seconds: float) -> float:
    return round(seconds * MILLISECONDS, 3)


def rounded_rate(per_second: float) -> float:
    """Returns a rate for a JSON document, with six significant digits."""
    return float(f"{per_second:.6g}")


def rounded(found: DataclassInstance, digits: int = 3) -> dict[str, float | None]:
    """Returns a dataclass of numbers for a JSON document."""
    return {
        name: None if value is None else round(value, digits)
        for name, value in asdict(found).items()
    }
