"""Loads a deployed endpoint for question answering, and prints its clients' measurements.

    python -m benchmarks.neuron.endpoint bert-qa-throughput --env production --clients 24

`benchmarks/neuron.md` measures endpoints with it. Each client has one request in flight at any
time, through SageMaker's InvokeEndpoint. The clients are threads, shared out among processes, since
signing and sending a request takes a core some milliseconds. A sentence is a question with its
context. Its words are one token each in bert-base-uncased's vocabulary. It has 113 tokens with the
special ones, so it fits a graph for 128 tokens and no shorter one.
"""

from __future__ import annotations

import argparse
import itertools
import json
import multiprocessing
import random
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from benchmarks.program import ROOT, ExitOneParser, positive
from benchmarks.report import MILLISECONDS
from benchmarks.summary import latencies_of
from slipway.access import open_access
from slipway.errors import UserError
from slipway.project import Project

# https://huggingface.co/google-bert/bert-base-uncased/blob/main/vocab.txt has each of them.
WORDS = (
    "the",
    "of",
    "and",
    "to",
    "in",
    "was",
    "is",
    "for",
    "on",
    "with",
    "as",
    "by",
    "at",
    "from",
    "it",
    "that",
    "this",
    "were",
    "are",
    "which",
    "or",
    "an",
    "be",
    "first",
    "one",
    "their",
    "had",
    "not",
    "have",
    "after",
    "new",
    "two",
    "all",
    "but",
    "time",
    "year",
    "city",
    "world",
    "school",
    "house",
    "water",
    "music",
    "day",
    "part",
    "work",
    "name",
    "line",
    "state",
)
QUESTION_WORDS = 10
CONTEXT_WORDS = 100

_BODIES = 64
_READ_TIMEOUT_SECONDS = 70  # SageMaker's 60, and the way there and back


@dataclass(frozen=True)
class Load:
    """The work of one process.

    Args:
        root: root of the project.
        environment: its name in environments.yaml.
        endpoint_name: EndpointName.
        bodies: sent in turn; each client begins at another one.
        clients: requests in flight at any time.
        warm_up_seconds: time before the requests that count.
        seconds: time in which the requests that count are sent.
    """

    root: Path
    environment: str
    endpoint_name: str
    bodies: tuple[bytes, ...]
    clients: int
    warm_up_seconds: float
    seconds: float


@dataclass(frozen=True)
class Seen:
    """The measurements of one client or of several.

    Args:
        latencies_seconds: of the requests that counted.
        spans_seconds: of each client, from its first request that counts to its last answer.
        failures: errors, each of which ended the load.
    """

    latencies_seconds: Sequence[float] = ()
    spans_seconds: Sequence[float] = ()
    failures: Sequence[str] = ()


def together(parts: Iterable[Seen]) -> Seen:
    """Returns the measurements of all parts."""
    parts = list(parts)
    return Seen(
        [latency for part in parts for latency in part.latencies_seconds],
        [span for part in parts for span in part.spans_seconds],
        [failure for part in parts for failure in part.failures],
    )


def drive(load: Load) -> Seen:
    """Drives the load of one process; the first error ends it."""
    try:
        access = open_access(Project(load.root).environment(load.environment), load.root)
    # The exception itself cannot travel between processes.
    except UserError as error:
        return Seen(failures=[str(error)])
    # Thread-safe, with a connection for each client; a failure is reported, not retried.
    runtime = access.client(
        "sagemaker-runtime",
        Config(
            max_pool_connections=load.clients,
            retries={"total_max_attempts": 1},
            read_timeout=_READ_TIMEOUT_SECONDS,
        ),
    )
    counts_from = time.monotonic() + load.warm_up_seconds
    ends_at = counts_from + load.seconds
    has_failed = threading.Event()

    def ask_until_the_end(number: int) -> Seen:
        latencies: list[float] = []
        began_at = ended_at = 0.0
        for sent in itertools.count():
            sent_at = time.monotonic()
            if sent_at >= ends_at or has_failed.is_set():
                break
            body = load.bodies[(number + sent * load.clients) % len(load.bodies)]
            try:
                runtime.invoke_endpoint(
                    EndpointName=load.endpoint_name, Body=body, ContentType="application/json"
                )["Body"].read()
            except (BotoCoreError, ClientError) as error:
                has_failed.set()
                return Seen(failures=[f"{load.endpoint_name}: {error}"])
            ended_at = time.monotonic()
            if sent_at >= counts_from:
                began_at = began_at or sent_at
                latencies.append(ended_at - sent_at)
        return Seen(latencies, [ended_at - began_at] if latencies else [])

    with ThreadPoolExecutor(load.clients) as pool:
        return together(pool.map(ask_until_the_end, range(load.clients)))


def make_bodies(sentences: int, seed: int) -> tuple[bytes, ...]:
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
        ).encode()
        for _ in range(_BODIES)
    )


def summary(sentences: int, latencies: Sequence[float], spans: Sequence[float]) -> dict[str, float]:
    """Returns sentences per second, by Little's law as `benchmarks.load`, and latencies.

    Args:
        sentences: sentences of each request.
        latencies: of all requests that counted, in seconds.
        spans: of each client, in seconds.
    """
    found = latencies_of(latencies)
    requests_per_second = len(spans) * len(latencies) / sum(spans)
    return {
        "sentences_per_second": round(sentences * requests_per_second, 1),
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
    parser.add_argument("--clients", type=positive, required=True, help="requests under way")
    parser.add_argument("--sentences", type=positive, default=1, help="of each request")
    parser.add_argument("--processes", type=positive, default=1, help="that share the clients out")
    parser.add_argument("--seconds", type=positive, default=60, help="that are measured")
    parser.add_argument("--warm-up-seconds", type=positive, default=10, help="before them")
    parser.add_argument("--seed", type=int, default=1, help="of the sentences")
    parser.add_argument("--project", type=Path, default=ROOT, help="folder of environments.yaml")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Drives the load and prints the results as JSON; returns the exit code."""
    options = make_parser().parse_args(arguments)
    processes = min(options.processes, options.clients)
    bodies = make_bodies(options.sentences, options.seed)
    loads = [
        Load(
            options.project,
            options.env,
            f"{options.name}-{options.env}",
            bodies[number:] + bodies[:number],
            # The first processes take the remainder.
            options.clients // processes + (number < options.clients % processes),
            options.warm_up_seconds,
            options.seconds,
        )
        for number in range(processes)
    ]
    # Fresh processes, which do not share this process's imports and connections.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context) as pool:
        found = together(pool.map(drive, loads))
    if found.failures or not found.latencies_seconds:
        reason = [*found.failures, "no request was answered in the time that counts"][0]
        print(f"The load ended early: {reason}", file=sys.stderr)
        return 1
    figures = summary(options.sentences, found.latencies_seconds, found.spans_seconds)
    print(json.dumps(figures, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
