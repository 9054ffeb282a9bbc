"""Records which test executes which line, and reads it."""

import ast
import functools
import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from coverage import CoverageData

from tools.planted_faults import PACKAGES, PlantedFaultsError
from tools.planted_faults.copies import Copy, run_pytest
from tools.planted_faults.faults import (
    Fault,
    defined_by,
    lines_of_functions,
    mentions,
    source_files,
)

SIZES: Final = ("test", "all", "deep")
_CONFIGURATION: Final = Path(__file__).with_name("coverage.ini")
# Its modules are imported without a package, so they are known by their folder.
_HANDLERS: Final = "containers/lmi/handler"
# Coverage.py's own start, without the variables that would show in the programs' environments. It
# works only in the copy's own environment, because a test may make a copy of the copy.
_START: Final = """
import os, sys
if sys.prefix == {prefix!r}:
    added = {variables!r}
    os.environ.update(added)
    import coverage
    coverage.process_startup()
    for name in added:
        os.environ.pop(name, None)
"""


def tests_file(data: Path) -> Path:
    """Returns the file with each test's seconds: it lies beside the data file."""
    return data.with_name(f"{data.name}.tests.json")


def record(root: Path, data: Path, size: str, arguments: Sequence[str], *, branches: bool) -> int:
    """Runs pytest in a copy of the project and writes a recording.

    Args:
        root: the project.
        data: coverage.py's data file, which is replaced.
        size: size of the run.
        arguments: paths and options of pytest.
        branches: whether branches are recorded too: the data is then some ten times as large.

    Returns:
        pytest's exit status.
    """
    data.parent.mkdir(parents=True, exist_ok=True)
    with Copy(root) as copy, tempfile.TemporaryDirectory(dir=data.parent) as pieces:
        handlers = copy.project / _HANDLERS
        variables = {
            "COVERAGE_PROCESS_START": str(_CONFIGURATION),
            "PLANTED_FAULTS_BRANCH": str(branches).lower(),
            "PLANTED_FAULTS_DATA": str(Path(pieces, data.name)),
            "PLANTED_FAULTS_HANDLERS": str(handlers) if handlers.is_dir() else "",
        }
        start = Path(pieces, "start.py")
        prefix = str(copy.python.parents[1])
        start.write_text(_START.format(prefix=prefix, variables=variables), "utf-8")
        copy.add_module(start, "planted_faults_start")
        copy.add_start("planted_faults_start", "import planted_faults_start")
        told = tests_file(data)
        told.unlink(missing_ok=True)
        status = copy.run(
            *run_pytest(copy, "recording_plugin", ["--size", size, *arguments]),
            variables={
                "PLANTED_FAULTS_PACKAGES": ",".join(PACKAGES),
                "PLANTED_FAULTS_TESTS": str(told),
            },
        )
        if not told.exists():
            raise PlantedFaultsError(f"pytest ended with status {status} before it ran tests")
        data.unlink(missing_ok=True)
        _combine(root, data, Path(pieces))
    return status or 0


def _combine(root: Path, data: Path, pieces: Path) -> None:
    variables = {"PLANTED_FAULTS_DATA": str(data), "PLANTED_FAULTS_RELATIVE": "true"}
    run_coverage(root, variables, "combine", "--quiet", f"--data-file={data}", str(pieces))
    combined = CoverageData(str(data))
    combined.read()
    combined.touch_files(source_files(root, PACKAGES))  # modules that nothing imported count too
    combined.write()


def run_coverage(root: Path, variables: dict[str, str], *arguments: str) -> None:
    """Runs the program of coverage.py with the recordings' configuration."""
    told = subprocess.run(  # noqa: S603  # fixed arguments
        [sys.executable, "-m", "coverage", arguments[0], f"--rcfile={_CONFIGURATION}",
         *arguments[1:]],
        cwd=root, env={**os.environ, **variables}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if told.returncode:
        raise PlantedFaultsError(f"coverage {arguments[0]}: {told.stdout}{told.stderr}".strip())


@dataclass(frozen=True)
class Test:
    """A test that passed when it was recorded.

    Attributes:
        name: its pytest node id.
        seconds: its time alone, with the fixtures that it shares with others.
    """

    name: str
    seconds: float


class Recording:
    """The lines that each test executes.

    Args:
        root: the project, for its sources.
        data: the data file.
        size: tests of larger sizes are left out.

    Raises:
        PlantedFaultsError: there is no such recording.
    """

    def __init__(self, root: Path, data: Path, size: str) -> None:
        if not data.exists() or not tests_file(data).exists():
            raise PlantedFaultsError(
                f"there is no recording {data}: "
                "python -m tools.planted_faults record --size all -- -n 2"
            )
        self._root = root
        told = json.loads(tests_file(data).read_text("utf-8"))
        self._tests: dict[str, Test] = {}
        self._users: dict[str, set[str]] = defaultdict(set)
        allowed = SIZES[: SIZES.index(size) + 1]
        for name, test in told["tests"].items():
            if test["passed"] and test.get("size") in allowed:
                shared = sum(told["fixtures"].get(each, 0.0) for each in test["fixtures"])
                self._tests[name] = Test(name, test["seconds"] + shared)
                for fixture in test["fixtures"]:
                    self._users[fixture].add(name)
        self._data = CoverageData(str(data))
        self._data.read()
        self._files = {Path(file).as_posix(): file for file in self._data.measured_files()}
        self._labels = functools.lru_cache(maxsize=32)(self._read_labels)

    def __len__(self) -> int:
        return len(self._tests)

    def tests_of(self, fault: Fault) -> list[Test] | None:
        """Returns the tests that may notice a fault, by name; None if no test executes it."""
        labels = self._labels(fault.file)
        place = fault.place
        own = range(place.line, place.last_line + 1)
        executed = [line for line in own if line in labels] or [
            line for line in place.lines if line in labels
        ]
        if not executed:
            return None
        told = {label for line in executed for label in labels[line]}
        found: set[str] = set()
        if place.at_import or not any(told):
            # Executed by no test: an import, or a process that did not know its test.
            found = self._tests_that_mention(fault.file, place.names)
            found |= self._tests_of_file(fault.file)
        return [self._tests[name] for name in sorted(found or self._users_of(told))] or None

    def _read_labels(self, file: str) -> dict[int, set[str]]:
        stored = self._files.get(file)
        if stored is None:
            return {}
        return {line: set(labels) for line, labels in self._data.contexts_by_lineno(stored).items()}

    def _users_of(self, labels: Iterable[str]) -> set[str]:
        found = set()
        for label in set(labels):
            kind, _, name = label.partition(" ")
            if kind == "test" and name in self._tests:
                found.add(name)
            elif kind == "fixture":
                found |= self._users.get(name, set())
        return found

    def _tests_of_lines(self, file: str, wanted: Callable[[int], bool]) -> set[str]:
        labels = self._labels(file)
        return self._users_of(
            label for line, found in labels.items() if wanted(line) for label in found
        )

    def _tests_of_file(self, file: str) -> set[str]:
        return self._tests_of_lines(file, self._modules[file].in_functions.__contains__)

    def _tests_that_mention(self, file: str, names: Sequence[str]) -> set[str]:
        """Returns the tests that use a name of a statement, or a name derived from it."""
        found: set[str] = set()
        told = self._made_of(file, names)
        for other, module in self._modules.items():
            lines = {
                line
                for name, home in told
                if other == home or not name.startswith("_")
                for line in module.mentions.get(name, ())
            }
            if lines & module.in_functions:
                found |= self._tests_of_lines(other, (lines & module.in_functions).__contains__)
        return found

    def _made_of(self, file: str, names: Sequence[str]) -> set[tuple[str, str]]:
        """Returns the given names and the names that imports derive from them, with their files.

        A class that has a field of a class is derived from it. The name of a field itself is not
        followed further, because too many fields share a name.
        """
        told = {(name, file) for name in names}
        waiting = [(names[-1], file)] if names else []
        while waiting:
            name, home = waiting.pop()
            others = [home] if name.startswith("_") else self._modules
            for other in others:
                module = self._modules[other]
                for line in module.mentions.get(name, ()):
                    made = (module.defines.get(line, ""), other)
                    if made[0] and made not in told:
                        told.add(made)
                        waiting.append(made)
        return told

    @functools.cached_property
    def _modules(self) -> "dict[str, _Module]":
        return {
            file: _module((self._root / file).read_bytes())
            for file in source_files(self._root, PACKAGES)
        }


@dataclass(frozen=True)
class _Module:
    """The names and lines of a source file.

    Attributes:
        in_functions: its lines that do not run when it is imported.
        mentions: the lines of each identifier.
        defines: for the other lines, the name that the outermost statement defines.
    """

    in_functions: set[int]
    mentions: dict[str, set[int]]
    defines: dict[int, str]


def _module(source: bytes) -> _Module:
    tree = ast.parse(source)
    found: dict[str, set[int]] = defaultdict(set)
    for name, line in mentions(tree):
        found[name].add(line)
    in_functions = lines_of_functions(tree)
    defines = {
        line: name
        for statement in tree.body
        for name in defined_by(statement)[:1]
        for line in range(statement.lineno, (statement.end_lineno or 0) + 1)
        if line not in in_functions
    }
    return _Module(in_functions, found, defines)
