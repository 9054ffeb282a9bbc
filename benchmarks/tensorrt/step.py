"""Measures the decode loop's processor time for a token, while texts end and others begin.

    python -m benchmarks.tensorrt.step --model gpt2-autocomplete --rows 32 8

The batch keeps its number of rows: wherever texts end, as many others join. They have the
lengths of the benchmark's single texts, so rows end and begin at most steps. Beside the model's
arithmetic, a token thus pays for its share of the moves of keys and values. Other programs on the
machine change processor time little, and the wall time much. To compare two commits, run both in
turn.
"""

import argparse
import itertools
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.models import Model
from benchmarks.program import BUILD, ExitOneParser, positive
from benchmarks.report import MILLISECONDS
from benchmarks.tensorrt.design import GPT2_124M, MIXED, SAMPLE
from benchmarks.tensorrt.models import ensure_model
from benchmarks.tensorrt.workloads import make_requests
from containers.tensorrt.generation import DecodingBatch, Prompt
from containers.tensorrt.model_directory import read_config
from containers.tensorrt.runtimes.onnx_runtime import OnnxRuntimeSession

_MODELS = {model.name: model for model in (GPT2_124M, SAMPLE)}
_SEED = 1


def measure(directory: Path, model: Model, *, rows: int, tokens: int, threads: int) -> Any:
    """Returns the processor time and the wall time of a token."""
    config = read_config(directory)
    session = OnnxRuntimeSession(directory, config, intra_op_threads=threads)
    batch = DecodingBatch(session, eos_token_ids=config.eos_token_ids)
    requests = itertools.cycle(make_requests(MIXED, model, _SEED))
    prompts = (Prompt(each.prompts[0], each.new_tokens) for each in requests)

    def decode() -> int:
        made = 0
        while made < tokens:
            joining = rows - batch.rows
            if joining:
                batch.join(list(itertools.islice(prompts, joining)))
            made += joining + batch.rows
            batch.step()
        return made

    decode()
    used_before, began_at = time.process_time(), time.perf_counter()
    made = decode()
    used, seconds = time.process_time() - used_before, time.perf_counter() - began_at
    return {
        "model": model.name,
        "rows": rows,
        "threads": threads,
        "tokens": made,
        "processor_milliseconds_per_token": round(used / made * MILLISECONDS, 3),
        "milliseconds_per_token": round(seconds / made * MILLISECONDS, 3),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures each number of rows and prints the results as JSON; returns 0."""
    parser = ExitOneParser(
        prog="python -m benchmarks.tensorrt.step",
        description="Measures the decode loop's processor time for a token.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--model", choices=tuple(_MODELS), default=SAMPLE.name)
    parser.add_argument("--rows", type=positive, nargs="+", default=[32, 8])
    parser.add_argument("--tokens", type=positive, default=2000, help="of each measurement")
    parser.add_argument("--threads", type=positive, default=os.cpu_count() or 1)
    options = parser.parse_args(arguments)
    model = _MODELS[options.model]
    directory = ensure_model(
        model, BUILD / "models", _SEED, lambda text: print(text, file=sys.stderr)
    )
    found = [
        measure(directory, model, rows=rows, tokens=options.tokens, threads=options.threads)
        for rows in options.rows
    ]
    print(json.dumps(found, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
