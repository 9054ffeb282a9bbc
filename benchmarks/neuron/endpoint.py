"""Loads a deployed endpoint for question answering, and prints its clients' measurements.

    python -m benchmarks.neuron.endpoint bert-qa-throughput --env production --clients 24

`benchmarks/neuron.md` measures endpoints with it. Each client has one request in flight at any
time, through SageMaker's InvokeEndpoint. The clients are threads, shared out among processes, since
signing and sending a request takes a core some milliseconds. A sentence is a question with its
context. Its words are one token each in bert-base-uncased's vocabulary. It has 113 tokens with the
special ones, so it fits a graph for 128 tokens and no shorter one.
"""

import argparse
import json
import multiprocessing
import random
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from functools import partial
from pathlib import Path

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from benchmarks.errors import BenchmarkError
from benchmarks.load import LoadResult, LoadSpecification, drive_through
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


def drive_endpoint(
    load: LoadSpecification, root: Path, environment: str, endpoint_name: str
) -> LoadResult:
    """Drives the load of one process.

    Args:
        load: the requests; a failure is reported, not retried.
        root: root of the project.
        environment: its name in environments.yaml.
        endpoint_name: EndpointName.

    Raises:
        BenchmarkError: there is no access to the account, or a request failed.
    """
    try:
        access = open_access(Project(root).environment(environment), root)
    # The exception itself cannot travel between processes.
    except UserError as error:
        raise BenchmarkError(str(error)) from None
    # Thread-safe, with a connection for each client.
    runtime = access.client(
        "sagemaker-runtime",
        Config(
            max_pool_connections=load.clients,
            retries={"total_max_attempts": 1},
            read_timeout=load.timeout_seconds,
        ),
    )

    def exchange(body: bytes) -> bytes:
        try:
            response = runtime.invoke_endpoint(
                EndpointName=endpoint_name, Body=body, ContentType="application/json"
            )
            answer: bytes = response["Body"].read()
        except (BotoCoreError, ClientError) as error:
            raise BenchmarkError(f"{endpoint_name}: {error}") from None
        return answer

    return drive_through(lambda: nullcontext(exchange), load)


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
        LoadSpecification(
            bodies=bodies[number:] + bodies[:number],
            # The first processes take the remainder.
            clients=options.clients // processes + (number < options.clients % processes),
            warm_up_seconds=options.warm_up_seconds,
            seconds=options.seconds,
            timeout_seconds=_READ_TIMEOUT_SECONDS,
        )
        for number in range(processes)
    ]
    drive = partial(
        drive_endpoint,
        root=options.project,
        environment=options.env,
        endpoint_name=f"{options.name}-{options.env}",
    )
    # Fresh processes, which do not share this process's imports and connections.
    context = multiprocessing.get_context("spawn")
    try:
        with ProcessPoolExecutor(processes, mp_context=context) as pool:
            found = list(pool.map(drive, loads))
    except BenchmarkError as error:
        print(f"The load ended early: {error}", file=sys.stderr)
        return 1
    latencies = [latency for load in found for latency in load.all_latencies_seconds]
    spans = [span for load in found for span in load.spans_seconds]
    print(json.dumps(summary(options.sentences, latencies, spans), indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
