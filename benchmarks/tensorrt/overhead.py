"""The time that the server adds to the decode loop: a request through HTTP against the bare loop.

    python -m benchmarks.tensorrt.overhead < {"port": ..., ...}

The loop runs in this process and in the server's, with the same session class, the same threads and
the same prompt. They run in pairs: one after the other, in a random order. A machine that changes
its speed affects both.
"""

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.clients import connected_to
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
    body = request.body.encode()
    times: dict[str, list[float]] = {"http": [], "bare": []}
    # Random numbers of an experiment, not of a secret.
    generator = random.Random(given["seed"])  # noqa: S311
    with connected_to(given["port"], _LIMIT_SECONDS) as exchange:
        ways: dict[str, Callable[[], Any]] = {
            "http": lambda: exchange(body),
            "bare": lambda: decode(request.prompts[0], request.new_tokens),
        }
        for number in range(_WARM_UP_PAIRS + given["pairs"]):
            found = {}
            order = list(ways)
            generator.shuffle(order)
            for way in order:
                started_at = time.perf_counter()
                found[way] = ways[way]()
                seconds = time.perf_counter() - started_at
                if number >= _WARM_UP_PAIRS:
                    times[way].append(seconds)
            [served] = generated_tokens(request, found["http"].decode())
            if served != tuple(found["bare"]):
                raise BenchmarkError(f"the server and the decode loop differ: {found}")
    return {f"{way}_seconds": seconds for way, seconds in times.items()}


if __name__ == "__main__":
    answer_call(_measure)
