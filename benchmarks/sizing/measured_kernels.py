r"""Compares NVIDIA's AIConfigurator and `slipway fit` on the measured rows that both can predict.

AIConfigurator is no part of this project's environment: `requirements-aiconfigurator.txt` beside
this file pins it. It predicts in an environment of its own, and reads one row a line as JSON:

    python -m venv /tmp/aiconfigurator
    /tmp/aiconfigurator/bin/pip install --require-hashes \
        --requirement benchmarks/sizing/requirements-aiconfigurator.txt
    python -m benchmarks.sizing.measured_kernels /tmp/aiconfigurator/bin/python
"""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Final

from benchmarks.sizing.rows import Row, read_rows
from benchmarks.sizing.validation import Prediction, pairs_of, predict_each

# Of the GPUs that it has kernels of vLLM for, those of measured rows of vLLM.
_SYSTEMS: Final[Mapping[str, str]] = {
    "NVIDIA H200": "h200_sxm",
    "NVIDIA L40S": "l40s",
    "NVIDIA RTX PRO Server 6000": "rtx_pro_6000_server",
}
_PREDICTOR: Final = Path(__file__).with_name("kernel_predictor.py")


def main() -> None:
    rows = read_rows()
    there = [r for r in rows if r.server.engine == "vllm" and r.server.gpu.product in _SYSTEMS]
    answers = _ask(sys.argv[1], there)
    theirs = [
        Prediction(row, seconds)
        for row, seconds in zip(there, answers, strict=True)
        if isinstance(seconds, float)
    ]
    known = {row.pair for row in there}
    ours = {
        (each.row.pair, each.row.label): each
        for each in predict_each(rows, lambda row: row.pair)
        if each.row.pair in known
    }
    sys.stdout.write(
        "| model | type | rows | AIConfigurator | `slipway fit` |\n|" + "---|" * 5 + "\n"
    )
    for name, kind in pairs_of([each.row for each in theirs]):
        own = [each for each in theirs if each.row.pair == (name, kind)]
        same = [ours[each.row.pair, each.row.label] for each in own]
        sys.stdout.write(f"| {name} | {kind} | {len(own)} | {_errors(own)} | {_errors(same)} |\n")
    same = [ours[each.row.pair, each.row.label] for each in theirs]
    sys.stdout.write(f"| all | | {len(theirs)} | {_errors(theirs)} | {_errors(same)} |\n")
    refused = {
        row.pair: each for row, each in zip(there, answers, strict=True) if isinstance(each, str)
    }
    for (name, kind), why in refused.items():
        sys.stdout.write(f"no prediction for {name} on {kind}: {why}\n")


def _ask(python: str, rows: Sequence[Row]) -> list[float | str]:
    questions = [
        {
            "model": row.model,
            "system": _SYSTEMS[row.server.gpu.product],
            "degree": row.server.degree,
            "has_experts": row.network.experts > 0,
            "concurrency": row.load.concurrency,
            "input_tokens": round(row.load.input_tokens),
            "output_tokens": round(row.load.output_tokens),
            "kept_tokens": round(row.load.input_tokens - (row.load.new_tokens or 0.0))
            if row.network.reuses_prompts
            else 0,
        }
        for row in rows
    ]
    done = subprocess.run(  # noqa: S603  # the interpreter that the caller names
        [python, str(_PREDICTOR)],
        input=json.dumps(questions),
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    answers: list[float | str] = json.loads(done.stdout.splitlines()[-1])
    return answers


def _errors(found: Sequence[Prediction]) -> str:
    sizes = [abs(each.error) for each in found]
    return f"{median(sizes):.1%}, {max(sizes):.1%}"


if __name__ == "__main__":
    main()
