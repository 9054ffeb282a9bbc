"""`make bench-triton`: T5 spelling correction on Triton, beside other ways to serve the model."""

import argparse
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.load import LoadResult, LoadSpecification
from benchmarks.program import Benchmark, Run, Say, add_trial_options
from benchmarks.servers import (
    PACKAGES,
    TIMEOUT_SECONDS,
    Answers,
    ServerPool,
    compare_before,
    measure_driver,
)
from benchmarks.trials import Trial, carry_out
from benchmarks.triton.design import (
    QUERIES,
    SERVERS,
    Cell,
    Design,
    Server,
    System,
    body,
    quick,
    read_answer,
)
from benchmarks.triton.report import LATENCIES, page, result
from benchmarks.triton.servers import find_triton, start_server
from slipway.embedded_aws.hosting.families.triton.triton_server import VERSION

# The first to answer, so that every text is compared with the text of transformers.
_REFERENCE = Server(System.GENERATE, 1)


def measure(
    design: Design, triton: Path, folder: Path, say: Say
) -> tuple[tuple[Trial[Cell, LoadResult], ...], int]:
    """Returns the trials, and how many answers were compared with the text of `generate`."""
    bodies = tuple(map(body, QUERIES))
    answers = Answers(lambda _index, text: read_answer(text))
    with ServerPool[Server](lambda server: start_server(server, folder, triton), say) as servers:

        def drive(cell: Cell) -> LoadResult:
            load = LoadSpecification(
                bodies,
                cell.clients,
                warm_up_requests=2,
                seconds=design.seconds,
                timeout_seconds=TIMEOUT_SECONDS,
            )
            result = servers.drive(cell.server, str(cell), load)
            answers.compare(str(cell), result.answers)
            return result

        for server in sorted(SERVERS, key=lambda each: each != _REFERENCE):
            compare_before(servers, server, str(server), bodies, answers)
            say(f"answers compared  {server}")
        trials = carry_out(
            design.rounds(),
            drive,
            lambda cell, load: f"{load.requests_per_second:7.1f} requests/s  {cell}",
            say,
        )
    return trials, answers.compared


def _add_options(parser: argparse.ArgumentParser) -> None:
    add_trial_options(parser, Design.trials, Design.stated_trials)


# Any: JSON.
def _measure(options: argparse.Namespace) -> tuple[Run, dict[str, Any]]:
    triton = find_triton(os.environ)
    design = Design(
        trials=options.trials,
        stated_trials=min(options.stated_trials, options.trials),
        seed=options.seed,
    )
    if options.quick:
        design = quick(design)
    run = Run((), PACKAGES, options.command)
    run.versions["Triton"] = VERSION
    with tempfile.TemporaryDirectory(prefix="slipway-triton-") as temporary:
        folder = Path(temporary)
        run.say("the load driver alone")
        driver = measure_driver(
            list(map(body, QUERIES)),
            design.concurrencies,
            LATENCIES,
            seconds=design.seconds,
            log=folder / "idle.log",
        )
        found = measure(design, triton, folder, run.say)
    return run, {**result(design, *found), "driver": driver}


BENCHMARK = Benchmark(
    "triton",
    __doc__,
    _add_options,
    _measure,
    page,
    quick="everything once or twice for a moment",
)

if __name__ == "__main__":
    sys.exit(BENCHMARK.main())
