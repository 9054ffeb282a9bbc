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
import json
import multiprocessing
import random
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from benchmarks.program import ROOT, ExitOneParser, positive
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
_MILLISECONDS = 1000


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


@dataclass
class _Seen:
    """The measurements of all clients of one process."""

    latencies_seconds: list[float] = field(default_factory=list)
    # Of each client: from its first request that counts to its last answer.
    spans_seconds: list[float] = field(default_factory=list)
    failure: str = ""


def drive(load: Load) -> tuple[list[float], list[float], str]:
    """Drives the load of one process.

    Returns:
        The latencies of the requests that counted, the span of each client, both in seconds, and
            the first error, or an empty string.
    """
    try:
        access = open_access(Project(load.root).environment(load.environment), load.root)
    # The exception itself cannot travel between processes.
    except UserError as error:
        return [], [], str(error)
    # Thread-safe, with a connection for each client; a failure is reported, not retried.
    runtime = access.client(
        "sagemaker-runtime",
        Config(
            max_pool_connections=load.clients,
            retries={"total_max_attempts": 1},
            read_timeout=_READ_TIMEOUT_SECONDS,
        ),
    )
    seen, lock = _Seen(), threading.Lock()
    counts_from = time.monotonic() + load.warm_up_seconds
    ends_at = counts_from + load.seconds

    def ask_until_the_end(number: int) -> None:
        latencies: list[float] = []
        began_at = ended_at = 0.0
        sent = 0
        while time.monotonic() < ends_at and not seen.failure:
            body = load.bodies[(number + sent * load.clients) % len(load.bodies)]
            sent += 1
            sent_at = time.monotonic()
            try:
                runtime.invoke_endpoint(
                    EndpointName=load.endpoint_name, Body=body, ContentType="application/json"
                )["Body"].read()
            except (BotoCoreError, ClientError) as error:
                with lock:
                    seen.failure = seen.failure or f"{load.endpoint_name}: {error}"
                return
            ended_at = time.monotonic()
            if sent_at >= counts_from:
                began_at = began_at or sent_at
                latencies.append(ended_at - sent_at)
        with lock:
            seen.latencies_seconds += latencies
            if latencies:
                seen.spans_seconds.append(ended_at - began_at)

    threads = [
        threading.Thread(target=ask_until_the_end, args=(number,)) for number in range(load.clients)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return seen.latencies_seconds, seen.spans_seconds, seen.failure


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
    p50, p95, p99 = np.percentile(latencies, (50, 95, 99)) * _MILLISECONDS
    requests_per_second = len(spans) * len(latencies) / sum(spans)
    return {
        "sentences_per_second": round(sentences * requests_per_second, 1),
        "p50_milliseconds": round(float(p50), 2),
        "p95_milliseconds": round(float(p95), 2),
        "p99_milliseconds": round(float(p99), 2),
        "requests": len(latencies),
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
        found = list(pool.map(drive, loads))
    failures = [failure for _, _, failure in found if failure]
    latencies = [latency for each, _, _ in found for latency in each]
    if failures or not latencies:
        reason = failures[0] if failures else "no request was answered in the time that counts"
        print(f"The load ended early: {reason}", file=sys.stderr)
        return 1
    spans = [span for _, each, _ in found for span in each]
    print(json.dumps(summary(options.sentences, latencies, spans), indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
