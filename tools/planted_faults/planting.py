"""Plants faults one at a time and runs the tests that execute them, cheapest first."""

import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from tools.planted_faults import PlantedFaultsError
from tools.planted_faults.copies import Copy, run_pytest
from tools.planted_faults.faults import Fault
from tools.planted_faults.places import plant
from tools.planted_faults.recording import Recording, Test

# Tests of one file stay together within a tier, so that their shared set-up happens once in each.
_TIERS_SECONDS: Final = (0.1, 1.0, 10.0)
# A run that does not end by itself is killed that long after its time.
_KILL_AFTER_SECONDS: Final = 90.0
START: Final = "the start of pytest"
"""Stands for a test where the fault keeps pytest, or a conftest.py, from starting."""

# Tests passed, some failed, none ran, or the run was killed.
_EXPECTED: Final = (0, 1, 5, None)

Verdict = Literal["noticed", "not noticed", "not executed", "over time"]
VERDICTS: Final[tuple[Verdict, ...]] = ("noticed", "not noticed", "not executed", "over time")


@dataclass(frozen=True)
class Outcome:
    """The result of one fault.

    Attributes:
        fault: the planted fault.
        verdict: one of VERDICTS.
        test: the test that noticed it, or ""; a file if its import fails.
        seconds: time of the runs.
        tests_run: number of tests that passed with the fault planted.
        tests: number of tests that execute the line.
    """

    fault: Fault
    verdict: Verdict
    test: str = ""
    seconds: float = 0.0
    tests_run: int = 0
    tests: int = 0


class Planting:
    """Plants faults in a copy.

    Args:
        copy: the project's copy; it is restored after each fault.
        recording: says which tests to run.
        size: size of the runs.
        seconds_per_fault: if tests still pass after that time, the next fault follows.
    """

    def __init__(
        self, copy: Copy, recording: Recording, size: str, seconds_per_fault: float
    ) -> None:
        self._copy = copy
        self._recording = recording
        self._size = size
        self._seconds = seconds_per_fault
        self._runs = 0
        # Tests that noticed a fault -> whether they pass in the unchanged copy.
        self._pass: dict[str, bool] = {}

    def outcomes(
        self, faults: Sequence[Fault], progress: Callable[[str], None]
    ) -> Iterator[Outcome]:
        """Yields the outcome of each fault, in order."""
        for number, fault in enumerate(faults, 1):
            progress(f"{number} of {len(faults)}: {fault.file}:{fault.line}: {fault.change}")
            yield self._outcome(fault)

    def _outcome(self, fault: Fault) -> Outcome:
        tests = self._recording.tests_of(fault)
        if tests is None:
            return Outcome(fault, "not executed")
        waiting = in_order([test for test in tests if self._pass.get(test.name, True)])
        started, ran, noticed_by = time.monotonic(), 0, ""
        while waiting and not noticed_by:
            left = self._seconds - (time.monotonic() - started)
            batch = that_fit(waiting, left)
            answer = self._run(batch, left, fault) if batch else _Answer(is_whole=False)
            ran += len(answer.passed)
            if answer.failed:
                if self._passes_without(answer.failed, batch):
                    noticed_by = answer.failed
                done = {test.name for test in batch if _is_part(test.name, answer.failed)}
                done.update(answer.passed)
            elif answer.is_whole:
                done = {test.name for test in batch}
            else:
                break
            waiting = [test for test in waiting if test.name not in done]
        verdict: Verdict = "over time" if waiting else "not noticed"
        return Outcome(
            fault,
            "noticed" if noticed_by else verdict,
            noticed_by,
            time.monotonic() - started,
            ran,
            len(tests),
        )

    def _passes_without(self, failed: str, batch: Sequence[Test]) -> bool:
        """Returns whether the failed test passes without a fault; otherwise it notices nothing."""
        if failed not in self._pass:
            again = [test for test in batch if _is_part(test.name, failed)] or batch
            answer = self._run(again[:1], self._seconds, None)
            self._pass[failed] = answer.is_whole and not answer.failed
        return self._pass[failed]

    def _run(self, tests: Sequence[Test], seconds: float, fault: Fault | None) -> "_Answer":
        self._runs += 1
        asked = self._copy.project.with_name("asked.json")
        answer = self._copy.project.with_name("answer.json")
        output = self._copy.project.with_name("output.txt")
        answer.unlink(missing_ok=True)
        each = [(test.name, test.seconds) for test in tests]
        asked.write_text(json.dumps({"tests": each, "seconds": seconds}), "utf-8")
        files = sorted({test.name.partition("::")[0] for test in tests})
        arguments = run_pytest(
            self._copy,
            "running_plugin",
            ["-n", "0", "--maxfail", "1", "-q", "--size", self._size, *files],
        )
        variables = {"PLANTED_FAULTS_ASKED": str(asked), "PLANTED_FAULTS_ANSWER": str(answer)}
        limit = seconds + _KILL_AFTER_SECONDS
        if fault is None:
            status = self._copy.run(*arguments, variables=variables, seconds=limit, output=output)
        else:
            original = (self._copy.project / fault.file).read_bytes()
            planted = plant(original, fault.place)
            with self._copy.changed(fault.file, planted, self._runs):
                status = self._copy.run(
                    *arguments, variables=variables, seconds=limit, output=output
                )
        told = json.loads(answer.read_text("utf-8")) if answer.exists() else {}
        failed: str = told.get("failed") or ""
        if status not in _EXPECTED and not failed and not told.get("is over"):
            if fault is None:
                raise PlantedFaultsError(
                    f"pytest ended with status {status} in the unchanged copy:\n"
                    f"{output.read_text('utf-8', 'replace')[-2000:]}"
                )
            failed = START
        is_whole = status is not None and not told.get("is over")
        return _Answer(tuple(told.get("passed", ())), failed, is_whole)


@dataclass(frozen=True)
class _Answer:
    """The result of a run of pytest.

    Attributes:
        passed: names of tests.
        failed: the first test or file that failed, or START, or "".
        is_whole: whether the run ended by itself.
    """

    passed: tuple[str, ...] = ()
    failed: str = ""
    is_whole: bool = True


def _is_part(test: str, name: str) -> bool:
    return name == START or test == name or test.startswith((f"{name}::", f"{name}/"))


def in_order(tests: Sequence[Test]) -> list[Test]:
    """Returns tests cheapest first, as far as tests of a file stay together in their tier."""
    groups: dict[tuple[int, str], list[Test]] = defaultdict(list)
    for test in tests:
        tier = sum(test.seconds > limit for limit in _TIERS_SECONDS)
        groups[tier, test.name.partition("::")[0]].append(test)
    for group in groups.values():
        group.sort(key=lambda test: (test.seconds, test.name))
    order = sorted(groups, key=lambda key: (key[0], groups[key][0].seconds, key[1]))
    return [test for key in order for test in groups[key]]


def that_fit(tests: Sequence[Test], seconds: float) -> list[Test]:
    """Returns the first tests that fit into the time; at least one, if there is time."""
    found: list[Test] = []
    for test in tests if seconds > 0 else ():
        seconds -= test.seconds
        if seconds < 0 and found:
            break
        found.append(test)
    return found


def as_json(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """Returns outcomes in the form in which they are written to a file and compared."""
    return [
        {
            "file": outcome.fault.file,
            "line": outcome.fault.line,
            "at": outcome.fault.place.start,
            "kind": outcome.fault.place.kind,
            "change": outcome.fault.change,
            "outcome": outcome.verdict,
            "test": outcome.test,
            "seconds": round(outcome.seconds, 1),
            "tests_run": outcome.tests_run,
            "tests": outcome.tests,
        }
        for outcome in outcomes
    ]
