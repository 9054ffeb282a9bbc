"""`make bench-config`: time and memory of reading, checking and planning 1,000 configs."""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.config_language.configs import find_templates, write_project
from benchmarks.config_language.design import GOAL_CONFIGS, Design
from benchmarks.config_language.report import as_json, as_markdown
from benchmarks.config_language.session import measure
from benchmarks.config_language.summary import summarize
from benchmarks.program import ROOT, Parser, Run, positive, run, stop_on_signals


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parses the command line; an invalid one ends the process with 1."""
    parser = Parser("benchmarks.config_language", __doc__, "config-language")
    parser.add_argument("--configs", type=positive, default=GOAL_CONFIGS, help="of the project")
    parser.add_argument("--trials", type=positive, default=15, help="of each task")
    return parser.parse(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures, writes the results and prints them; returns the exit code."""
    return run(parse(arguments), _measure)


def _measure(options: argparse.Namespace) -> tuple[dict[str, Any], str]:
    """Measures; returns the JSON document and the page."""
    session = Run((), ("pydantic", "PyYAML", "typer"))
    with tempfile.TemporaryDirectory(prefix="slipway-benchmark-") as folder:
        project = Path(folder)
        session.say(f"making {options.configs} configs")
        first = write_project(project, find_templates(ROOT), options.configs, options.seed)
        design = Design(options.configs, options.trials, options.seed, tuple(first.items()))
        found = measure(design, project, ROOT, session.say)
    context, rows = session.end(), summarize(design, found)
    return as_json(design, rows, found, context), as_markdown(design, rows, context)


if __name__ == "__main__":
    stop_on_signals()
    sys.exit(main())
