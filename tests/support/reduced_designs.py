"""Shipped designs at a size that a sample's endpoint measures in a second."""

import json
import shutil
from pathlib import Path
from typing import Any

import yaml

from slipway.benchmarking.design import shipped_designs
from tests.support.workbench import Workbench

# What the samples take.
_MOST_INPUT_TOKENS, _MOST_OUTPUT_TOKENS, _MOST_CLIENTS = 48, 16, 2


def reduced_design(name: str, folder: Path) -> Path:
    """Writes a shipped design with the first and the last level that fits, and one short trial."""
    shipped = shipped_designs()[name]
    content = yaml.safe_load(shipped.read_text("utf-8"))
    factors = content["factors"]
    limits = {
        "input_tokens": _MOST_INPUT_TOKENS,
        "output_tokens": _MOST_OUTPUT_TOKENS,
        "concurrency": _MOST_CLIENTS,
    }
    for factor, levels in factors.items():
        fitting = sorted({min(level, limits.get(factor, level)) for level in levels})
        factors[factor] = sorted({fitting[0], fitting[-1]})
    content |= {"trials": 1, "seconds": 0.2, "warm_up_seconds": 0}
    content.pop("requests", None)
    if "file" in content.get("prompts", {}):
        shutil.copy(shipped.parent / content["prompts"]["file"], folder)
    path = folder / f"reduced-{name}.yaml"
    path.write_text(json.dumps(content), "utf-8")
    return path


# Any: JSON.
def measured(bench: Workbench, model: str, design: str) -> dict[str, Any]:
    """Measures an endpoint with a reduced design, and checks what every run must have."""
    path = reduced_design(design, bench.project)
    bench.must("slipway", "bench", model, "--design", path.name, "--output", design)
    found: dict[str, Any] = json.loads((bench.project / design / "summary.json").read_text("utf-8"))
    assert found["stopped"] is None
    for cell in found["cells"]:
        assert cell["failures"] == {}
        # On a busy machine the self-test refuses a level.
        assert cell["trials"] == 1 or "the client" in cell["not_measured"]
    assert found["published"] or design == "text-generation"
    page = (bench.project / design / "report.html").read_text("utf-8")
    assert "this machine, which has no price" in page
    rows = (bench.project / design / "rows.jsonl").read_text("utf-8").splitlines()
    assert all(json.loads(row)["kind"] == "200" for row in rows)
    return found
