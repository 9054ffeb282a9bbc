"""The bare decode loop: the container's computation, without a server around it.

    python -m benchmarks.tensorrt.bare < {"model_directory": ..., ...}

All texts begin together and have the same number of new tokens, so the batch keeps its rows from
the first step to the last. No server can have more tokens per second from batches of that size.
"""

import itertools
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.execution import answer_call, call_module
from benchmarks.load import LoadResult
from benchmarks.servers import server_variables
from benchmarks.tensorrt.workloads import Request

_LIMIT_SECONDS = 900.0


def measure_bare_loop(
    model_directory: Path,
    requests: Sequence[Request],
    *,
    threads: int,
    seconds: float,
) -> tuple[LoadResult, list[tuple[tuple[int, ...], ...]]]:
    """Decodes the texts of several requests together, again and again, in a fresh process.

    Returns the measurements, as if each request had a client that never pauses, and the tokens of
    each request's texts.
    """
    document = {
        "model_directory": str(model_directory),
        "prompts": [prompt for request in requests for prompt in request.prompts],
        "new_tokens": requests[0].new_tokens,
        "threads": threads,
        "seconds": seconds,
    }
    found = call_module(
        "benchmarks.tensorrt.bare",
        document,
        limit_seconds=_LIMIT_SECONDS,
        variables=server_variables(os.environ),
    )
    times, texts = found["seconds"], iter(found["tokens"])
    tokens = [
        tuple(map(tuple, itertools.islice(texts, len(request.prompts)))) for request in requests
    ]
    load = LoadResult(
        latencies_seconds=(times,) * len(requests),
        spans_seconds=(sum(times),) * len(requests),
        answers=(),
        driver_processor_seconds=0.0,
        seconds=sum(times),
    )
    return load, tokens


# Any: JSON.
def _measure(given: Mapping[str, Any]) -> dict[str, Any]:
    # Imported here, so that the benchmark's own process does not load a runtime.
    from containers.tensorrt.generation import Prompt, generate
    from containers.tensorrt.model_directory import read_config
    from containers.tensorrt.runtimes.onnx_runtime import OnnxRuntimeSession

    directory = Path(given["model_directory"])
    config = read_config(directory)
    session = OnnxRuntimeSession(directory, config, intra_op_threads=given["threads"])
    prompts = [Prompt(tuple(tokens), given["new_tokens"]) for tokens in given["prompts"]]
    found = generate(session, prompts, eos_token_ids=config.eos_token_ids)
    times: list[float] = []
    while not times or sum(times) < given["seconds"]:
        started_at = time.perf_counter()
        generate(session, prompts, eos_token_ids=config.eos_token_ids)
        times.append(time.perf_counter() - started_at)
    return {"seconds": times, "tokens": [tokens for [tokens] in found]}


if __name__ == "__main__":
    answer_call(_measure)
