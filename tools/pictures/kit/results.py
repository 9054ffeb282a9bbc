"""The committed results of the benchmarks, which plots are drawn from."""

import json
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parents[3] / "benchmarks" / "results"


def results(name: str) -> dict[str, Any]:
    """Returns a benchmark's result, as its run wrote it into benchmarks/results."""
    found: dict[str, Any] = json.loads((_FOLDER / f"{name}.json").read_text("utf-8"))
    return found
