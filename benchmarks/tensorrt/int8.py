"""Times GPT-2 on processors: fp32 and int8 in the container's loop, and CTranslate2 in int8.

    make export
    .venv/bin/python tools/install.py --target build/ctranslate2 --require-hashes \
      --requirement benchmarks/tensorrt/requirements-ctranslate2.txt
    PYTHONPATH=build/ctranslate2 .venv/bin/python -m benchmarks.tensorrt.int8 --rounds 9

A run generates ten texts of 12 + 30 tokens, greedy, all together. Each round starts every system in
a process of its own, in another order, so that neither a neighbour's load nor idle threads of one
system are another's. All have the same random weights.
"""

import argparse
import json
import os
import random
import statistics
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.execution import call_module
from benchmarks.machine import core_count
from benchmarks.models import ensure_made
from benchmarks.program import BUILD, ROOT, ExitOneParser, positive
from benchmarks.tensorrt.design import GPT2_124M, GPT2_SMALL
from benchmarks.tensorrt.int8_run import SYSTEMS

_LIMIT_SECONDS = 600.0
_SEED = 1


def main(arguments: Sequence[str] | None = None) -> int:
    parser = ExitOneParser(
        prog="python -m benchmarks.tensorrt.int8",
        description="Times GPT-2 on processors in fp32, in int8, and in CTranslate2.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--rounds", type=positive, default=5)
    parser.add_argument("--runs", type=positive, default=3, help="of a system in a round")
    parser.add_argument("--threads", type=positive, default=core_count())
    parser.add_argument("--quick", action="store_true", help="a small model, to see that it works")
    options = parser.parse_args(arguments)
    base = GPT2_SMALL if options.quick else GPT2_124M
    folder = ensure_made(
        replace(base, name=f"{base.name}-int8"),
        BUILD / "models",
        _SEED,
        lambda text: print(text, file=sys.stderr),
        maker="benchmarks.tensorrt.int8_run",
        sources=(
            Path(__file__).with_name("int8_run.py"),
            *sorted((ROOT / "containers/tensorrt/export").glob("*.py")),
        ),
        packages=("ctranslate2", "onnx", "torch", "transformers"),
    )
    order = list(SYSTEMS)
    found: dict[str, list[float]] = {system: [] for system in order}
    for number in range(options.rounds):
        random.Random(number).shuffle(order)  # noqa: S311
        for system in order:
            given = {"system": system, "folder": str(folder), "vocabulary": base.vocabulary}
            given |= {"threads": options.threads, "runs": options.runs}
            found[system] += call_module(
                "benchmarks.tensorrt.int8_run", given, limit_seconds=_LIMIT_SECONDS
            )
    seconds = {
        system: {
            "least": round(min(times), 3),
            "median": round(statistics.median(times), 3),
            "most": round(max(times), 3),
            "runs": len(times),
        }
        for system, times in found.items()
    }
    report = {"model": base.title, "threads": options.threads, "load_average": os.getloadavg()}
    print(json.dumps({**report, "seconds": seconds}, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
