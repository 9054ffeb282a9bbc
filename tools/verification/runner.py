"""Runs the steps of `make verify-gpu` and `make verify-neuron`, and writes one JSON file.

Each step runs in a process of its own, so that a step that crashes does not stop the others. A step
returns a `Finding`: facts, and perhaps a table. `tools.hardware_report` makes a page of them.
"""

import argparse
import contextlib
import importlib
import importlib.metadata
import importlib.util
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from benchmarks.errors import BenchmarkError
from benchmarks.execution import answer_call, call_module
from benchmarks.program import ROOT, ExitOneParser, Run, positive, stop_on_signals

_DETAIL_CHARACTERS = 4000
_MODULE = "tools.verification.runner"


@dataclass(frozen=True)
class Stage:
    """One stage that was run; it is left out if a stage that it needs did not succeed.

    `detail` is its finding, or the reason of its failure.
    """

    name: str
    outcome: Literal["ok", "failed", "interrupted", "left out"]
    seconds: float
    detail: str


def carry_out(
    name: str,
    action: Callable[[], str],
    expected: tuple[type[Exception], ...],
    keep: Callable[[Stage], object],
) -> None:
    """Carries out a stage, which may fail with expected errors; others are bugs, and are raised.

    `keep` takes how it ended, also after an interrupt or a bug.
    """
    begun = time.monotonic()
    outcome: Literal["ok", "failed", "interrupted"] = "interrupted"
    detail = "interrupted"
    try:
        detail = action()
        outcome = "ok"
    except expected as error:
        outcome, detail = "failed", str(error)
    finally:
        keep(Stage(name, outcome, round(time.monotonic() - begun, 1), detail))


@dataclass(frozen=True)
class Finding:
    """The result of a step: facts by their names for readers, and perhaps a table.

    With problems, the step failed in spite of its result.
    """

    facts: Mapping[str, str | int | float | None]
    header: Sequence[str] = ()
    rows: Sequence[Sequence[str | int | float | None]] = ()
    problems: Sequence[str] = ()


@dataclass(frozen=True)
class Order:
    """What a step is told: `folder` has the files that steps share, and `root` the machine's.

    A measurement takes `seconds` at least, and each cell has `trials`. Quick is with small models.
    """

    folder: Path
    seed: int
    seconds: float
    trials: int
    is_quick: bool
    root: Path = Path("/")


@dataclass(frozen=True)
class Step:
    """One step, which cannot run without the success of those that it needs.

    `about` is half a sentence.
    """

    name: str
    about: str
    limit_seconds: float
    needs: Sequence[str] = ()


@dataclass(frozen=True)
class Verification:
    """A command that verifies one kind of hardware, by the name of its target of make.

    The module has the function of each step by its name, as `STEPS`. `missing` returns what this
    machine lacks, each with its remedy. Without that, `device` returns the device's properties. A
    result names the versions of `packages`. The machine's file system begins at `root`.
    """

    name: str
    module: str
    about: str
    steps: Sequence[Step]
    missing: Callable[[], Sequence[str]]
    device: Callable[[], Mapping[str, str | int | float | None]]
    packages: Sequence[str] = ()
    root: Path = Path("/")


def lacking(modules: Mapping[str, str]) -> list[str]:
    """Returns a line for each Python module that is not installed, with its remedy."""
    found = []
    for name, remedy in modules.items():
        spec = None
        # Of a package around it that is missing.
        with contextlib.suppress(ModuleNotFoundError):
            spec = importlib.util.find_spec(name)
        if spec is None:
            found.append(f"the Python module {name} is not installed: {remedy}")
    return found


def verify(verification: Verification, arguments: Sequence[str] | None = None) -> int:
    """Runs the steps, and writes the result after each of them; returns the exit status.

    The result keeps other steps of an earlier run of the same code on the same machine. The status
    is 0 if every step succeeded, 1 if one failed or the machine lacks something, and 130 after an
    interrupt.
    """
    stop_on_signals()
    options = _parse(verification, arguments)
    missing = verification.missing()
    if missing:
        lines = "\n".join(f"- {line}" for line in missing)
        print(f"This machine cannot run `make {verification.name}` yet:\n{lines}", file=sys.stderr)
        return 1
    folder = (options.folder / "quick" if options.quick else options.folder).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    discover = importlib.metadata.Distribution.discover
    installed = [name for name in verification.packages if any(discover(name=name))]
    run = Run((), installed, f"make {verification.name}")
    order = Order(
        folder, options.seed, options.seconds, options.trials, options.quick, verification.root
    )
    device = dict(verification.device())
    records: list[dict[str, Any]] = []
    names = [step.name for step in verification.steps]
    earlier = options.output.read_text("utf-8", "replace") if options.output.is_file() else ""

    def write() -> None:
        document = {
            "verification": verification.name,
            "quick": options.quick,
            **run.end().as_json(),
            "device": device,
        }
        found = {each["name"]: each for each in (*_kept(earlier, document), *records)}
        document["steps"] = sorted(found.values(), key=lambda each: names.index(each["name"]))
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(
            json.dumps(document, indent=2, ensure_ascii=False) + "\n", "utf-8"
        )

    try:
        for step in verification.steps:
            if not options.steps or step.name in options.steps:
                run.say(f"{step.name}: {step.about}")
                records.append(_carry_out(verification.module, step, order, records))
                run.say(f"{step.name}: {records[-1]['outcome']}  {_shown(records[-1])}")
                write()
    except KeyboardInterrupt:
        run.say("stopped")
        return 130
    run.say(f"wrote {options.output}")
    return 0 if all(record["outcome"] == "ok" for record in records) else 1


# Any: JSON.
def _answer(document: Mapping[str, Any]) -> dict[str, Any]:
    given = document["order"]
    paths = {name: Path(given[name]) for name in ("folder", "root")}
    steps = importlib.import_module(document["module"]).STEPS
    return asdict(steps[document["step"]](Order(**{**given, **paths})))


# Any: JSON.
def _kept(earlier: str, document: Mapping[str, Any]) -> Any:
    """Returns the steps of an earlier result, if it is of the same code and the same machine."""
    try:
        found = json.loads(earlier)
        same = [each["machine"]["versions"] for each in (document, found)]
        names = ("verification", "quick", "commit", "device")
        is_same = same[0] == same[1] and all(document[name] == found[name] for name in names)
        return found["steps"] if is_same else []
    except (ValueError, LookupError, TypeError):
        return []


def _carry_out(
    module: str, step: Step, order: Order, records: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    failed = [
        record["name"]
        for record in records
        if record["name"] in step.needs and record["outcome"] != "ok"
    ]
    if failed:
        detail = f"it needs {' and '.join(failed)}, which did not succeed"
        return asdict(Stage(step.name, "left out", 0.0, detail))
    paths = {"folder": str(order.folder), "root": str(order.root)}
    document = {"module": module, "step": step.name, "order": asdict(order) | paths}
    found: dict[str, Any] = {}
    stages: list[Stage] = []

    def action() -> str:
        found.update(call_module(_MODULE, document, limit_seconds=step.limit_seconds))
        if problems := found.pop("problems"):
            raise BenchmarkError("; ".join(problems))
        return ""

    carry_out(step.name, action, (BenchmarkError,), stages.append)
    [stage] = stages
    # The last lines of a traceback name the error.
    return {**asdict(stage), "detail": stage.detail[-_DETAIL_CHARACTERS:], **found}


def _shown(record: Mapping[str, Any]) -> str:
    facts = ", ".join(f"{name} {value}" for name, value in record.get("facts", {}).items())
    return "\n".join(filter(None, (record["detail"], facts)))


def _parse(verification: Verification, arguments: Sequence[str] | None) -> argparse.Namespace:
    variable = f"{verification.name.upper().replace('-', '_')}_ARGS"
    folder = ROOT / "build" / verification.name
    parser = ExitOneParser(
        prog=f"make {verification.name} {variable}=...",
        description=verification.about,
        epilog="; ".join(f"{step.name}: {step.about}" for step in verification.steps),
    )
    names = [step.name for step in verification.steps]
    parser.add_argument("steps", nargs="*", metavar="STEP", help=f"of {', '.join(names)}; else all")
    parser.add_argument("--folder", type=Path, default=folder, help="for models, engines and logs")
    parser.add_argument("--output", type=Path, default=folder / "result.json", help="the result")
    parser.add_argument("--seconds", type=float, default=1.0, help="least time of a measurement")
    parser.add_argument("--trials", type=positive, default=3, help="measurements of each cell")
    parser.add_argument("--seed", type=int, default=1, help="of weights and requests")
    parser.add_argument("--quick", action="store_true", help="small models: a rehearsal")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.steps if name not in names]
    if unknown:
        parser.error(f"no step {' or '.join(unknown)}; the steps are {', '.join(names)}")
    return options


if __name__ == "__main__":
    # A step that takes too long ends the servers that it started.
    stop_on_signals()
    answer_call(_answer)
