"""`make bench`: times what a user types, in projects of 1 to 500 model configs."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn

from benchmarks.control_plane.design import Design
from benchmarks.control_plane.report import Context, as_json, as_markdown
from benchmarks.control_plane.session import measure
from benchmarks.control_plane.summary import summarize
from benchmarks.control_plane.workspace import Workspace
from benchmarks.errors import BenchmarkError
from benchmarks.machine import describe_commit, describe_machine
from embedded_aws.errors import LocalAwsError

ROOT = Path(__file__).resolve().parents[2]
_MAX_CONFIGS = 5000


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Ends with 1, the exit code of everything a user can put right."""
        self.print_usage(sys.stderr)
        self.exit(1, f"{self.prog}: {message}\n")


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Reads the command line; what is wrong with it ends the process with 1."""
    parser = _Parser(
        prog="python -m benchmarks.control_plane",
        description=__doc__,
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument(
        "--sizes", type=_sizes, default="1,10,100,500", help="numbers of configs, with commas"
    )
    parser.add_argument("--trials", type=_positive, default=7, help="of each command and size")
    parser.add_argument(
        "--stated-trials",
        type=_positive,
        default=3,
        help="of the cdk commands without `-c models`: slow, and only stated",
    )
    parser.add_argument("--seed", type=int, default=1, help="of the order of the trials")
    parser.add_argument(
        "--output",
        type=Path,
        default=ROOT / "benchmarks" / "results",
        metavar="DIR",
        help="folder for control-plane.json and control-plane.md",
    )
    parser.add_argument("--json", action="store_true", help="print the JSON, not the page")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures, writes the results and prints them; returns the exit code."""
    options = parse(sys.argv[1:] if arguments is None else arguments)
    design = Design(
        sizes=options.sizes,
        trials=options.trials,
        stated_trials=min(options.stated_trials, options.trials),
        seed=options.seed,
    )
    try:
        options.output.mkdir(parents=True, exist_ok=True)
        document, page = _run(design)
        _write(options.output / "control-plane.json", document)
        _write(options.output / "control-plane.md", page)
    except KeyboardInterrupt:
        print("Stopped.", file=sys.stderr)
        return 130
    except (BenchmarkError, LocalAwsError, OSError) as error:
        print(f"The benchmark ended early: {error}", file=sys.stderr)
        return 1
    print(document if options.json else page, end="")
    return 0


def _run(design: Design) -> tuple[str, str]:
    """Measures; returns the JSON document and the page."""
    started, clock = datetime.now(UTC), time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - clock:5.0f} s  {text}", file=sys.stderr, flush=True)

    commit = describe_commit(ROOT)
    machine = describe_machine(("node", "cdk"), ("aws-cdk-lib", "jsii", "pydantic"))
    if machine.load_average > machine.core_count / 2:
        say(
            f"this machine is busy (load average {machine.load_average:g} on {machine.core_count} "
            "cores): the times will be longer, and further apart, than they should be"
        )
    with (
        tempfile.TemporaryDirectory(prefix="slipway-benchmark-") as folder,
        Workspace(Path(folder), say) as workspace,
    ):
        workspace.prepare(design.sizes)
        trials = measure(design, workspace, say)
        say("stopping the embedded AWS")
    context = Context(started, datetime.now(UTC), commit, machine)
    summary = summarize(design, trials)
    document = json.dumps(as_json(design, summary, context), indent=2) + "\n"
    return document, as_markdown(design, summary, context)


def _write(path: Path, text: str) -> None:
    path.write_text(text, "utf-8")
    print(f"wrote {path}", file=sys.stderr)


def _stop(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


def _positive(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def _sizes(text: str) -> tuple[int, ...]:
    sizes = sorted({_positive(part.strip()) for part in text.split(",")})
    if sizes[-1] > _MAX_CONFIGS:
        raise argparse.ArgumentTypeError(f"{sizes[-1]} is more than {_MAX_CONFIGS} configs")
    return tuple(sizes)


if __name__ == "__main__":
    for ending in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, _stop)
    sys.exit(main())
