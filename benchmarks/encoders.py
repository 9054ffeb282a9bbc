"""BERT in the TensorRT container on the CPU, against `transformers`.

    python -m benchmarks.encoders

16 clients ask all servers the same questions, in trials that alternate. The questions, the models
and the agreement of the answers are the Neuron benchmark's (`benchmarks.neuron`). Of the container
with int8 weights, the answers with the same span are counted.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.errors import BenchmarkError
from benchmarks.estimates import at_least, pooled_latencies, throughput_ratio
from benchmarks.load import LoadResult, LoadSpecification
from benchmarks.neuron.design import BERT_BASE, BERT_SMALL, GOAL_CLIENTS, MIXED, SAMPLE, Bert
from benchmarks.neuron.models import ensure_model, in_int8
from benchmarks.neuron.workloads import Answer, make_requests, read_answer
from benchmarks.program import BUILD, ExitOneParser, add_trial_options, stop_on_signals
from benchmarks.report import Labelled, estimated, rounded, significant
from benchmarks.servers import (
    TIMEOUT_SECONDS,
    Answers,
    LoopbackServer,
    ServerPool,
    compare_before,
    shared_settings,
    start_container,
)
from benchmarks.trials import Trial, carry_out, results_of, rounds_of

LEAST_RATIO = 2.0
# As in model_configs/bert-qa-gpu.yaml.
_MAX_BATCH_SIZE = 8


class System(Labelled):
    """A server."""

    TRANSFORMERS = "transformers", "`transformers`, one request at a time"
    SLIPWAY = "slipway", f"Slipway, batches of up to {_MAX_BATCH_SIZE}"
    INT8 = "int8", "Slipway with int8 weights"


PROGRAMS = {
    System.TRANSFORMERS: ("-m", "benchmarks.baselines.transformers_encoder"),
    System.SLIPWAY: ("-m", "containers.tensorrt", "serve"),
    System.INT8: ("-m", "containers.tensorrt", "serve"),
}


@dataclass(frozen=True)
class Design:
    models: tuple[Bert, ...] = (BERT_BASE, SAMPLE)
    trials: int = 5
    seconds: float | None = None
    seed: int = 1


def start_server(system: System, directory: Path, folder: Path) -> LoopbackServer:
    size = 1 if system is System.TRANSFORMERS else _MAX_BATCH_SIZE
    settings = {**shared_settings(directory), "SLIPWAY_MAX_BATCH_SIZE": str(size)}
    if system is System.TRANSFORMERS:
        # Threads that wait do not spin, as in the container. Otherwise the driver, or another
        # program on these cores, would slow PyTorch down several times.
        settings["OMP_WAIT_POLICY"] = "PASSIVE"
    return start_container(PROGRAMS[system], folder / f"{directory.name}-{system}.log", settings)


def measure(design: Design, model: Bert, folder: Path) -> tuple[Trial[System, LoadResult], ...]:
    directory = ensure_model(model, BUILD / "models", design.seed, say)
    int8 = ensure_model(in_int8(model), BUILD / "models", design.seed, say)
    requests = make_requests(MIXED, directory / "tokenizer.json", design.seed)
    bodies = tuple(request.body for request in requests)
    answers = Answers[Answer](
        lambda index, text: read_answer(requests[index], text), Answer.agrees_with
    )
    load = LoadSpecification(
        bodies,
        GOAL_CLIENTS,
        warm_up_requests=1,
        seconds=model.seconds if design.seconds is None else design.seconds,
        timeout_seconds=TIMEOUT_SECONDS,
    )

    def start(system: System) -> LoopbackServer:
        return start_server(system, int8 if system is System.INT8 else directory, folder)

    with ServerPool[System](start, say) as servers:

        def drive(system: System) -> LoadResult:
            result = servers.drive(system, system.label, load)
            if system is System.INT8:
                same = answers.same(result.answers, Answer.has_span_of)
                of = sum(count for _, _, count in result.answers)
                say(f"{same} of {of} answers in int8 have the span that fp32 has")
            else:
                answers.compare(system.label, result.answers)
            return result

        for system in (System.TRANSFORMERS, System.SLIPWAY):
            compare_before(servers, system, system.label, bodies, answers)
        return carry_out(
            rounds_of(list(System), lambda _: design.trials, f"{design.seed} {model.name}"),
            drive,
            lambda system, found: f"{found.requests_per_second:7.1f} requests/s  {system.label}",
            say,
        )


def lines(model: Bert, trials: Sequence[Trial[System, LoadResult]], seed: int) -> list[str]:
    found = []
    for system in System:
        loads = results_of(trials, system)
        rates = [load.requests_per_second for load in loads]
        p50, p95 = (getattr(pooled_latencies(loads), name) * 1000 for name in ("p50", "p95"))
        found.append(
            f"{model.title}, {system.label}: {significant(median(rates))} requests/s "
            f"({significant(min(rates))} to {significant(max(rates))}), "
            f"p50 {significant(p50)} ms, p95 {significant(p95)} ms"
        )
    for system in (System.SLIPWAY, System.INT8):
        ratio = throughput_ratio(trials, system, System.TRANSFORMERS, np.random.default_rng(seed))
        found.append(
            f"{model.title}, {system.label}: {estimated(rounded(ratio))} times; at least "
            f"{LEAST_RATIO:g}: {at_least(ratio, LEAST_RATIO)}"
        )
    return found


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = ExitOneParser(prog="python -m benchmarks.encoders", description=__doc__)
    add_trial_options(parser, Design.trials)
    parser.add_argument("--quick", action="store_true", help="small models, for a moment")
    options: argparse.Namespace = parser.parse_args(arguments)
    design = Design(trials=options.trials)
    if options.quick:
        design = Design((BERT_SMALL,), trials=2, seconds=0.2)
    stop_on_signals()
    print(f"load average at the start: {os.getloadavg()[0]:.2f}")
    try:
        with tempfile.TemporaryDirectory(prefix="slipway-encoders-") as temporary:
            for model in design.models:
                trials = measure(design, model, Path(temporary))
                print(*lines(model, trials, design.seed), sep="\n", flush=True)
    except KeyboardInterrupt:
        return 130
    except (BenchmarkError, OSError) as error:
        print(f"The benchmark ended early: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
