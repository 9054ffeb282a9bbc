"""`python -m tools.suite_times JUNIT_FILE...`: shows how the tests' seconds are distributed.

pytest writes the junit files (`make test` and the other test targets, into build/junit). Several
files are several runs that have no test in common.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

TESTS = Path(__file__).parents[1] / "tests"
# Seconds that the tests of a folder may take together, on two cores.
BUDGET = TESTS / "budget.json"
# Seconds of each test file, by which pytest's workers take the longest first.
SECONDS = TESTS / "seconds.json"
# A machine's speed varies; a run beyond this many times its budget fails.
TOLERANCE = 1.5
SLOWEST = 50
STARTS = "starts "


class JunitError(Exception):
    pass


class Test(NamedTuple):
    """One test of a junit file.

    The name has its class, if any. The seconds are those of set-up, call and tear-down. `groups`
    are needed beyond `make setup`, and `starts` are the programs that its fixtures started, by
    kind.
    """

    file: str
    name: str
    seconds: float
    outcome: str
    groups: frozenset[str]
    starts: Counter[str]

    @property
    def folder(self) -> str:
        """Returns the folder below tests/, two levels at most."""
        return "/".join(self.file.split("/")[1:-1][:2]) or "."


def read(files: Iterable[Path]) -> tuple[list[Test], float]:
    """Returns the tests of junit files, and the wall time of the runs in seconds."""
    tests, clock_seconds = [], 0.0
    for file in files:
        try:
            root = ElementTree.parse(file).getroot()  # noqa: S314  # pytest wrote it here
        except (OSError, ElementTree.ParseError) as error:
            raise JunitError(f"{file}: {error}; `make test-all` writes build/junit/*.xml") from None
        for suite in root.iter("testsuite"):
            clock_seconds += float(suite.get("time", "0"))
            tests += [_test(case) for case in suite.iter("testcase")]
    return tests, clock_seconds


def _test(case: ElementTree.Element) -> Test:
    parts = case.get("classname", "").split(".")
    # Test modules are called test_*; a part after that name is a class.
    depth = next((i for i, part in enumerate(parts) if part.startswith("test_")), len(parts) - 1)
    outcomes = {"failure": "failed", "error": "error", "skipped": "skipped"}
    outcome = next((outcomes[child.tag] for child in case if child.tag in outcomes), "passed")
    groups, starts = set[str](), Counter[str]()
    for each in case.iter("property"):
        name, value = each.get("name", ""), each.get("value", "")
        if name == "group":
            groups.add(value)
        elif name.startswith(STARTS):
            starts[name.removeprefix(STARTS)] += int(value)
    return Test(
        "/".join(parts[: depth + 1]) + ".py",
        ".".join([*parts[depth + 1 :], case.get("name", "")]),
        float(case.get("time", "0")),
        outcome,
        frozenset(groups),
        starts,
    )


def by_folder(tests: Iterable[Test]) -> dict[str, list[Test]]:
    folders = dict[str, list[Test]]()
    for test in tests:
        folders.setdefault(test.folder, []).append(test)
    return dict(sorted(folders.items(), key=lambda item: -seconds_of(item[1])))


def seconds_of(tests: Iterable[Test]) -> float:
    return sum(test.seconds for test in tests)


def read_budget(tests: Sequence[Test]) -> dict[str, float]:
    """Returns the seconds that the tests of each folder may take in a run of these tests.

    A folder or a group that was left out adds no seconds, and no room for the others either.
    """
    document = json.loads(BUDGET.read_text("utf-8"))
    groups = frozenset[str]().union(*(test.groups for test in tests))
    budget = Counter[str](document["seconds"])
    for group in groups & document["more_seconds_with"].keys():
        budget.update(document["more_seconds_with"][group])
    return {name: budget[name] for name in by_folder(tests) if name in budget}


def closing_line(tests: Sequence[Test], clock_seconds: float) -> str:
    """Returns one line for all runs, in the form of pytest's own."""
    counts = Counter(test.outcome for test in tests)
    parts = [f"{counts[name]} {name}" for name in ("failed", "passed", "skipped", "error")]
    said = ", ".join(part for part in parts if not part.startswith("0 ")) or "no tests ran"
    minutes, seconds = divmod(int(clock_seconds), 60)
    clock = f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"
    return f" {said} in {clock_seconds:.2f}s ({clock}) ".center(100, "=")


def report(tests: Sequence[Test], budget: Mapping[str, float]) -> str:
    lines = [f"{'folder':<28}{'seconds':>9}{'budget':>9}{'tests':>8}  programs started"]
    for name, inside in by_folder(tests).items():
        allowed = f"{budget[name]:.0f}" if name in budget else "none"
        counts = sum((test.starts for test in inside), Counter[str]())
        starts = ", ".join(f"{count} {each}" for each, count in sorted(counts.items()))
        lines.append(f"{name:<28}{seconds_of(inside):>9.1f}{allowed:>9}{len(inside):>8}  {starts}")
    lines.append(f"{'all':<28}{seconds_of(tests):>9.1f}{sum(budget.values()):>9.0f}{len(tests):>8}")
    lines += ["", f"The {SLOWEST} slowest tests:"]
    slowest = sorted(tests, key=lambda test: -test.seconds)[:SLOWEST]
    return "\n".join([*lines, *(f"{t.seconds:>9.1f}  {t.file}::{t.name}" for t in slowest)])


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the report, and returns 1 if the run is too far over its budget."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.suite_times",
        description="Print where the seconds of the tests go, beside their budget.",
    )
    parser.add_argument("files", nargs="+", type=Path, help="junit files of pytest")
    parser.add_argument(
        "--write-seconds", action="store_true", help=f"write tests/{SECONDS.name} anew"
    )
    options = parser.parse_args(arguments)
    try:
        tests, clock_seconds = read(options.files)
    except JunitError as error:
        print(error, file=sys.stderr)
        return 1
    budget = read_budget(tests)
    seconds, allowed = seconds_of(tests), sum(budget.values())
    is_over = seconds > TOLERANCE * allowed
    if options.write_seconds:
        _write_seconds(tests)
    print(report(tests, budget))
    if is_over:
        print(f"\n{seconds:.0f} s of tests: more than {TOLERANCE} times {allowed:.0f} s.")
        print(f"Make them cheaper, or say in {BUDGET.name} what the new ones may cost.")
    print(closing_line(tests, clock_seconds))
    return 1 if is_over else 0


def _write_seconds(tests: Iterable[Test]) -> None:
    """Writes the files that take a second or more; the others need no order."""
    files = dict[str, float]()
    for test in tests:
        files[test.file] = files.get(test.file, 0.0) + test.seconds
    long = {name: round(seconds, 1) for name, seconds in sorted(files.items()) if seconds >= 1}
    SECONDS.write_text(json.dumps(long, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    sys.exit(main())
