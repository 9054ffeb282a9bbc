"""Loads a deployed endpoint for question answering, and prints its clients' measurements.

    python -m benchmarks.neuron.endpoint bert-qa-throughput --env production --clients 24
    python -m benchmarks.neuron.endpoint bert-qa-throughput --requests-per-second 400

`benchmarks/neuron.md` measures endpoints with it, through SageMaker's InvokeEndpoint. The result
names its loop. In the closed loop each client has one request in flight at any time. In the open
loop requests arrive at random times. Clients and connections are shared out among processes.

A sentence is a question with its context. Its words are one token each in bert-base-uncased's
vocabulary. It has 113 tokens with the special ones, so it fits a graph for 128 tokens and no
shorter one.
"""

import argparse
import json
import random
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.errors import BenchmarkError
from benchmarks.estimates import latencies_of
from benchmarks.load import (
    LoadResult,
    LoadSpecification,
    OpenLoadResult,
    OpenLoadSpecification,
    drive_signed,
)
from benchmarks.program import ROOT, ExitOneParser, positive
from benchmarks.report import MILLISECONDS
from benchmarks.shared_load import drive_in_processes, shared_out
from slipway.access import open_access
from slipway.benchmarking.signed import signed_requests
from slipway.errors import UserError
from slipway.project import Project

# https://huggingface.co/google-bert/bert-base-uncased/blob/main/vocab.txt has each of them.
WORDS = tuple(Path(__file__).with_name("words.txt").read_text("utf-8").split())
QUESTION_WORDS = 10
CONTEXT_WORDS = 100

_BODIES = 64
# Seeds of the processes of two loads are never the same.
_MOST_PROCESSES = 1000
_READ_TIMEOUT_SECONDS = 70  # SageMaker's 60, and the way there and back


def drive_endpoint(
    load: LoadSpecification | OpenLoadSpecification,
    root: Path,
    environment: str,
    endpoint_name: str,
) -> LoadResult | OpenLoadResult:
    """Drives the load of one process."""
    try:
        access = open_access(Project(root).environment(environment), root)
        requests = signed_requests(access, endpoint_name)
    # The exception itself cannot travel between processes.
    except UserError as error:
        raise BenchmarkError(str(error)) from None
    try:
        return drive_signed(requests, load)
    except BenchmarkError as error:
        raise BenchmarkError(f"{endpoint_name}: {error}") from None


def make_bodies(sentences: int, seed: int) -> tuple[str, ...]:
    """Returns requests of that many sentences each, the same for the same seed."""
    generator = random.Random(seed)  # noqa: S311  # of an experiment, not of a secret

    def text(words: int) -> str:
        return " ".join(generator.choices(WORDS, k=words))

    return tuple(
        json.dumps(
            {
                "inputs": [
                    {"question": text(QUESTION_WORDS), "context": text(CONTEXT_WORDS)}
                    for _ in range(sentences)
                ]
            }
        )
        for _ in range(_BODIES)
    )


def closed_summary(sentences: int, found: Sequence[LoadResult]) -> dict[str, Any]:
    """Returns sentences per second, by Little's law, and latencies."""
    latencies = [latency for load in found for latency in load.all_latencies_seconds]
    spans = [span for load in found for span in load.spans_seconds]
    return _summary("closed", sentences * len(spans) * len(latencies) / sum(spans), latencies)


def open_summary(sentences: int, found: Sequence[OpenLoadResult]) -> dict[str, Any]:
    """Returns the rate of answers in sentences per second, and latencies from the arrivals."""
    late = [each for load in found for each in load.late_seconds]
    latencies = [latency for load in found for latency in load.latencies_seconds]
    rate = sentences * sum(load.requests_per_second for load in found)
    return {
        **_summary("open", rate, latencies),
        "sent_late_p99_milliseconds": round(latencies_of(late).p99 * MILLISECONDS, 2),
    }


def _summary(loop: str, rate: float, latencies: Sequence[float]) -> dict[str, Any]:
    found = latencies_of(latencies)
    return {
        "loop": loop,
        "sentences_per_second": round(rate, 1),
        "p50_milliseconds": round(found.p50 * MILLISECONDS, 2),
        "p95_milliseconds": round(found.p95 * MILLISECONDS, 2),
        "p99_milliseconds": round(found.p99 * MILLISECONDS, 2),
        "requests": found.count,
    }


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    parser = ExitOneParser(
        prog="python -m benchmarks.neuron.endpoint",
        description="Loads a deployed endpoint for question answering.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("name", help="model, which is deployed")
    parser.add_argument("--env", default="local", help="environment")
    loop = parser.add_mutually_exclusive_group(required=True)
    loop.add_argument("--clients", type=positive, help="closed loop: requests under way")
    loop.add_argument(
        "--requests-per-second", type=positive, help="open loop: mean rate of the arrivals"
    )
    parser.add_argument(
        "--connections", type=positive, default=64, help="open loop: most requests under way"
    )
    parser.add_argument("--sentences", type=positive, default=1, help="of each request")
    parser.add_argument("--processes", type=positive, default=1, help="that share the load out")
    parser.add_argument("--seconds", type=positive, default=60, help="that are measured")
    parser.add_argument("--warm-up-seconds", type=positive, default=10, help="before them")
    parser.add_argument("--seed", type=int, default=1, help="of the sentences and the arrivals")
    parser.add_argument("--project", type=Path, default=ROOT, help="folder of environments.yaml")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Drives the load and prints the results as JSON; returns the exit code."""
    options = make_parser().parse_args(arguments)
    drive = partial(
        drive_endpoint,
        root=options.project,
        environment=options.env,
        endpoint_name=f"{options.name}-{options.env}",
    )
    try:
        found = drive_in_processes(drive, _loads(options))
    except BenchmarkError as error:
        print(f"The load ended early: {error}", file=sys.stderr)
        return 1
    if closed := [each for each in found if isinstance(each, LoadResult)]:
        summary = closed_summary(options.sentences, closed)
    else:
        opened = [each for each in found if isinstance(each, OpenLoadResult)]
        summary = open_summary(options.sentences, opened)
    print(json.dumps(summary, indent=2))
    return 0


def _loads(options: argparse.Namespace) -> list[LoadSpecification | OpenLoadSpecification]:
    """Returns the part of each process in the load."""
    is_closed = options.clients is not None
    shares = shared_out(options.clients if is_closed else options.connections, options.processes)
    bodies = make_bodies(options.sentences, options.seed)
    loads: list[LoadSpecification | OpenLoadSpecification] = []
    for number, share in enumerate(shares):
        # Any: the fields that both kinds have.
        common: dict[str, Any] = {
            "bodies": bodies[number:] + bodies[:number],
            "warm_up_seconds": options.warm_up_seconds,
            "seconds": options.seconds,
            "timeout_seconds": _READ_TIMEOUT_SECONDS,
        }
        if is_closed:
            loads.append(LoadSpecification(clients=share, **common))
            continue
        # The sum of Poisson processes is a Poisson process.
        rate = options.requests_per_second / len(shares)
        seed = options.seed * _MOST_PROCESSES + number
        loads.append(
            OpenLoadSpecification(requests_per_second=rate, connections=share, seed=seed, **common)
        )
    return loads


if __name__ == "__main__":
    sys.exit(main())
