"""The time that the server adds to the decode loop: a request through HTTP against the bare loop.

    python -m benchmarks.tensorrt.overhead < {"port": ..., ...}

The loop runs in this process and in the server's, with the same session class, the same threads and
the same prompt. They run in pairs: one after the other, in a random order. A machine that changes
its speed affects both.
"""

from __future__ import annotations

import http.client
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.errors import BenchmarkError
from benchmarks.execution import answer_call, call_module
from benchmarks.tensorrt.workloads import Request, generated_tokens

_WARM_UP_PAIRS = 3
_LIMIT_SECONDS = 600.0


@dataclass(frozen=True)
class Overhead:
    """The pairs, in the order in which they ran.

    Args:
        http_seconds: times of the requests.
        bare_seconds: times of the decode loops.
    """

    http_seconds: Sequence[float]
    bare_seconds: Sequence[float]


def measure_overhead(
    port: int,
    model_directory: Path,
    request: Request,
    *,
    threads: int,
    pairs: int,
    seed: int,
    variables: Mapping[str, str],
) -> Overhead:
    """Measures in a fresh process.

    Args:
        port: port of Slipway's server.
        model_directory: the model that it serves.
        request: must have one text.
        threads: threads that the server computes with.
        pairs: number of pairs to measure.
        seed: seed of the order in the pairs.
        variables: environment of the process.

    Raises:
        BenchmarkError: a request failed, or the two answers differ.
    """
    document = {
        "port": port,
        "model_directory": str(model_directory),
        "prompts": request.prompts,
        "new_tokens": request.new_tokens,
        "threads": threads,
        "pairs": pairs,
        "seed": seed,
    }
    try:
        found = call_module(
            "benchmarks.tensorrt.overhead",
            document,
            limit_seconds=_LIMIT_SECONDS,
            variables=variables,
        )
    except BenchmarkError as error:
        raise BenchmarkError(f"measuring the server's overhead failed: {error}") from None
    return Overhead(**found)


# Any: JSON.
def _measure(given: Mapping[str, Any]) -> dict[str, Any]:
    # Imported here, so that the benchmark's own process does not load a runtime.
    from benchmarks.tensorrt.bare import open_decode_loop

    [prompt] = given["prompts"]
    request = Request((tuple(prompt),), given["new_tokens"])
    decode = open_decode_loop(Path(given["model_directory"]), given["threads"])
    connection = http.client.HTTPConnection("127.0.0.1", given["port"], timeout=_LIMIT_SECONDS)
    body, headers = request.body.encode(), {"Content-Type": "application/json"}
    answers: dict[str, object] = {}

    def through_http() -> float:
        started_at = time.perf_counter()
        connection.request("POST", "/invocations", body, headers)
        response = connection.getresponse()
        answer = response.read()
        seconds = time.perf_counter() - started_at
        if response.status != http.HTTPStatus.OK:
            raise BenchmarkError(f"a request was answered with {response.status}: {answer!r}")
        answers["http"] = generated_tokens(request, answer.decode())[0]
        return seconds

    def bare() -> float:
        started_at = time.perf_counter()
        tokens = decode(request.prompts[0], request.new_tokens)
        seconds = time.perf_counter() - started_at
        answers["bare"] = tuple(tokens)
        return seconds

    ways: dict[str, Callable[[], float]] = {"http": through_http, "bare": bare}
    times: dict[str, list[float]] = {way: [] for way in ways}
    # Random numbers of an experiment, not of a secret.
    generator = random.Random(given["seed"])  # noqa: S311
    for number in range(_WARM_UP_PAIRS + given["pairs"]):
        order = list(ways)
        generator.shuffle(order)
        for way in order:
            seconds = ways[way]()
            if number >= _WARM_UP_PAIRS:
                times[way].append(seconds)
        if answers["http"] != answers["bare"]:
            raise BenchmarkError(f"the server and the decode loop differ: {answers}")
    connection.close()
    return {f"{way}_seconds": seconds for way, seconds in times.items()}


if __name__ == "__main__":
    answer_call(_measure)
