"""Predicts rows by AIConfigurator, in whose environment it runs: JSON in, JSON out."""

import json
import logging
import shutil
import sys
import tempfile
from importlib import resources
from pathlib import Path
from typing import Any

from aiconfigurator.cli.api import cli_estimate


def main() -> None:
    logging.disable(logging.WARNING)
    with tempfile.TemporaryDirectory() as folder:
        found = [_predicted(row, Path(folder)) for row in json.load(sys.stdin)]
    print(json.dumps(found))


def _predicted(row: dict[str, Any], folder: Path) -> float | str:
    degree = row["degree"]
    # As vLLM spreads experts without `--enable-expert-parallel`.
    experts = {"moe_tp_size": degree, "moe_ep_size": 1} if row["has_experts"] else {}
    try:
        found = cli_estimate(
            str(_checkpoint(row["model"], folder)),
            row["system"],
            mode="agg",
            backend_name="vllm",
            isl=row["input_tokens"],
            osl=row["output_tokens"],
            batch_size=row["concurrency"],
            tp_size=degree,
            prefix=row["kept_tokens"],
            **experts,
        )
    except Exception as error:  # any refusal is a result
        return f"{type(error).__name__}: {str(error).splitlines()[0][:160]}"
    return float(found.request_latency) / 1000


def _checkpoint(model: str, folder: Path) -> Path | str:
    """Returns the model's name, or a folder with its config where the name alone is not known."""
    name = model.replace("/", "--")
    source = resources.files("aiconfigurator_core") / "model_configs" / f"{name}_config.json"
    if not source.is_file():
        return model
    beside = folder / model.split("/")[1]
    beside.mkdir(exist_ok=True)
    with resources.as_file(source) as path:
        shutil.copy(path, beside / "config.json")
    return beside


if __name__ == "__main__":
    main()
