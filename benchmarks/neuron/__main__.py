"""`make bench-neuron`: the Neuron container on the CPU, against a naive TorchScript server."""

from __future__ import annotations

import argparse
import shlex
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.baselines.stack import check_requirements, nginx_version
from benchmarks.neuron.design import Design, full_design, quick_design
from benchmarks.neuron.report import Setting, as_json, as_markdown
from benchmarks.neuron.session import measure_driver, measure_model
from benchmarks.neuron.summary import summarize
from benchmarks.program import ROOT, Parser, Run, positive, run, stop_on_signals

_RESULT = "neuron"
_RESULTS = ROOT / "benchmarks" / "results"
_BUILD = ROOT / "build" / "benchmarks"
_PACKAGES = (
    "flask",
    "gunicorn",
    "numpy",
    "onnxruntime",
    "starlette",
    "tokenizers",
    "torch",
    "transformers",
    "uvicorn",
)


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Parses the command line; an invalid one ends the process with 1."""
    parser = Parser("benchmarks.neuron", __doc__, _RESULT)
    parser.add_argument(
        "--quick",
        action="store_true",
        help="a minute of everything with small models, to see that it works: the result goes to "
        f"{(_BUILD / 'quick').relative_to(ROOT)}, never to benchmarks/results",
    )
    parser.add_argument("--trials", type=positive, default=3, help="of what a goal is about")
    parser.add_argument("--stated-trials", type=positive, default=1, help="of everything else")
    options = parser.parse_args(arguments)
    if options.quick and options.output.resolve() == _RESULTS:
        options.output = _BUILD / "quick"
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures, writes the results and prints them; returns the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = parse(given)
    command = shlex.join(["python", "-m", "benchmarks.neuron", *given])
    return run(options, _RESULT, lambda: _measure(_design(options), command))


def _design(options: argparse.Namespace) -> Design:
    if options.quick:
        return quick_design(seed=options.seed)
    return full_design(
        trials=options.trials, stated_trials=options.stated_trials, seed=options.seed
    )


def _measure(design: Design, command: str) -> tuple[dict[str, Any], str]:
    """Measures; returns the JSON document and the page."""
    check_requirements("bench-neuron")
    session = Run((), _PACKAGES)
    with tempfile.TemporaryDirectory(prefix="slipway-benchmark-") as temporary:
        session.say("the load driver alone")
        driver = measure_driver(design, Path(temporary))
        sessions = []
        for model in design.models:
            folder = Path(temporary, model.name)
            folder.mkdir()
            sessions.append(
                measure_model(design, model, folder, models=_BUILD / "models", say=session.say)
            )
    context = session.end()
    context.machine.versions["nginx"] = nginx_version()
    setting = Setting(command, driver)
    summaries = summarize(design, sessions)
    return (
        as_json(design, summaries, setting, context),
        as_markdown(design, summaries, setting, context),
    )


if __name__ == "__main__":
    stop_on_signals()
    sys.exit(main())
