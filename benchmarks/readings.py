"""Trials that are read in seconds and bytes: their goals and cells, as JSON and as a page."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from benchmarks.estimates import Verdict, at_least, at_most, spread
from benchmarks.report import Document, goals_line, rounded, significant, table
from benchmarks.trials import Trial
from slipway.benchmarking.estimates import Estimate

Cell = TypeVar("Cell")
Result = TypeVar("Result")
Readings = Mapping[str, float]
"""The readings of one trial by name; the name has the unit, such as `process_seconds`."""

# Of a second: tenths of a millisecond.
_DIGITS = 4


# Any: JSON, as below.
def cells_as_json(
    cells: Iterable[Cell],
    trials: Sequence[Trial[Cell, Result]],
    describe: Callable[[Cell], Mapping[str, Any]],
    read: Callable[[Result], Readings] = vars,
) -> list[dict[str, Any]]:
    """Returns the cells that were measured: what identifies them, their readings, every trial."""
    found = []
    for cell in cells:
        own = [(trial.round, read(trial.result)) for trial in trials if trial.cell == cell]
        if own:
            readings = {
                name: rounded(spread(each[name] for _, each in own), _DIGITS) for name in own[0][1]
            }
            each_trial = [
                {"round": number, **{name: round(value, _DIGITS) for name, value in each.items()}}
                for number, each in own
            ]
            found.append({**describe(cell), "readings": readings, "trials": each_trial})
    return found


def goal(
    title: str,
    found: Estimate | None,
    *,
    least: float | None = None,
    most: float | None = None,
    unit: str = "",
) -> dict[str, Any]:
    """Returns a goal with its verdict; without `least` or `most` it has none."""
    verdict: Verdict | None = None
    limit = "none"
    if least is not None:
        limit = f"at least {least:g} {unit}".rstrip()
        verdict = at_least(found, least) if found else Verdict.NOT_MEASURED
    elif most is not None:
        limit = f"at most {most:g} {unit}".rstrip()
        verdict = at_most(found, most) if found else Verdict.NOT_MEASURED
    return {
        "goal": title,
        "limit": limit,
        "unit": unit,
        "found": rounded(found, _DIGITS) if found else None,
        "verdict": verdict,
    }


def goals_section(goals: Sequence[Document], interval: str) -> list[str]:
    """Returns how many goals are met, and the table of them; `interval` says what theirs is."""
    rows = []
    for each in goals:
        found, unit = each["found"], each["unit"]
        shown = (
            [f"{significant(found['value'])} {unit}".rstrip(), "one trial"] if found else ["", ""]
        )
        if found and found["low"] is not None:
            shown[1] = f"{significant(found['low'])} to {significant(found['high'])}"
        rows.append([each["goal"], each["limit"], *shown, each["verdict"] or ""])
    verdicts = (each["verdict"] for each in goals if each["verdict"])
    return [goals_line(verdicts), table(["", "goal", "found", interval, "verdict"], rows)]
