"""Prints the faults of a run, two runs side by side, and coverage by package."""

import json
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tools.planted_faults import PlantedFaultsError
from tools.planted_faults.planting import VERDICTS
from tools.planted_faults.recording import run_coverage

Row = Mapping[str, Any]


def place(row: Row) -> str:
    """Returns file and line."""
    return f"{row['file']}:{row['line']}"


def outcome(row: Row) -> str:
    """Returns the outcome of a fault in words."""
    seconds, run, tests = f"{row['seconds']:.0f} s", row["tests_run"], row["tests"]
    match row["outcome"]:
        case "noticed":
            return f"noticed by {row['test']} in {seconds}"
        case "not noticed":
            return f"not noticed: {run} tests passed in {seconds}"
        case "over time":
            return f"over time: {run} of {tests} tests passed in {seconds}"
        case other:
            return str(other)


def table(rows: Sequence[Row]) -> Iterator[str]:
    """Yields a line for each fault, and the sums."""
    where = max((len(place(row)) for row in rows), default=0)
    what = max((len(row["change"]) for row in rows), default=0)
    for row in rows:
        yield f"{place(row):{where}}  {row['change']:{what}}  {outcome(row)}"
    counts = Counter(row["outcome"] for row in rows)
    minutes = sum(row["seconds"] for row in rows) / 60
    sums = ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS)
    yield f"{len(rows)} faults: {sums}; {minutes:.0f} minutes"


def read(path: Path) -> list[dict[str, Any]]:
    """Returns the faults of a run that were written as JSON.

    Raises:
        PlantedFaultsError: the file is no such JSON.
    """
    try:
        rows: list[dict[str, Any]] = json.loads(path.read_text("utf-8"))["faults"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise PlantedFaultsError(f"{path} is not what --json writes: {error}") from error
    return rows


def compare(first: Sequence[Row], second: Sequence[Row]) -> Iterator[str]:
    """Yields the faults that only one of two runs noticed, and the sums."""
    one, other = ({_key(row): row for row in rows} for rows in (first, second))
    both = [key for key in one if key in other]
    noticed_by = [
        {key for key in both if rows[key]["outcome"] == "noticed"} for rows in (one, other)
    ]
    for title, rest, keys in (
        ("Only the first noticed:", other, noticed_by[0] - noticed_by[1]),
        ("Only the second noticed:", one, noticed_by[1] - noticed_by[0]),
    ):
        if keys:
            yield title
        for key in sorted(keys):
            row, seen = rest[key], (one if rest is other else other)[key]
            yield f"  {place(row)}  {row['change']}"
            yield f"    {outcome(seen)}; the other run: {outcome(row)}"
    for title, rows, missing in (
        ("first", one, len(one) - len(both)),
        ("second", other, len(other) - len(both)),
    ):
        if missing:
            yield f"{missing} of the {len(rows)} faults of the {title} run are in it alone."
    yield (
        f"{len(both)} faults: both noticed {len(noticed_by[0] & noticed_by[1])}, only the first "
        f"{len(noticed_by[0] - noticed_by[1])}, only the second "
        f"{len(noticed_by[1] - noticed_by[0])}, neither "
        f"{len(both) - len(noticed_by[0] | noticed_by[1])}"
    )


def _key(row: Row) -> tuple[str, int, int, str]:
    return (row["file"], row["line"], row["at"], row["change"])


def coverage_by_package(root: Path, data: Path) -> dict[str, dict[str, int]]:
    """Returns the lines and branches of each package that a recording executed.

    A package is a folder with modules. Its numbers do not include its subfolders.

    Raises:
        PlantedFaultsError: there is no such recording, or coverage.py cannot read it.
    """
    if not data.exists():
        raise PlantedFaultsError(f"there is no recording {data}")
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder, "coverage.json")
        variables = {"PLANTED_FAULTS_DATA": str(data), "PLANTED_FAULTS_RELATIVE": "true"}
        run_coverage(root, variables, "json", f"--data-file={data}", "-q", f"-o{written}")
        files = json.loads(written.read_text("utf-8"))["files"]
    packages: dict[str, dict[str, int]] = defaultdict(
        lambda: dict.fromkeys(("lines", "lines_executed", "branches", "branches_executed"), 0)
    )
    for file, report in files.items():
        if not report["summary"]["num_statements"]:
            continue
        numbers = packages[".".join(Path(file).parent.parts)]
        summary = report["summary"]
        numbers["lines"] += summary["num_statements"]
        numbers["lines_executed"] += summary["covered_lines"]
        numbers["branches"] += summary.get("num_branches", 0)
        numbers["branches_executed"] += summary.get("covered_branches", 0)
    return dict(sorted(packages.items()))


def coverage_table(packages: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    """Yields a line for each package, and one for all."""
    total: Counter[str] = Counter()
    for numbers in packages.values():
        total.update(numbers)
    width = max(map(len, [*packages, "package"]))
    yield f"{'package':{width}}  {'lines':>19}  {'branches':>19}"
    for name, numbers in [*packages.items(), ("all", total)]:
        yield f"{name:{width}}  {_share(numbers, 'lines')}  {_share(numbers, 'branches')}"


def _share(numbers: Mapping[str, int], kind: str) -> str:
    executed, there = numbers[f"{kind}_executed"], numbers[kind]
    if not there:
        return f"{'-':>19}"
    return f"{executed:>5} of {there:>5} {executed / there:>4.0%}"
