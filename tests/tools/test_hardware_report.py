"""The pages of a run on real hardware."""

import json
from pathlib import Path
from typing import Any

import pytest

from tools.hardware_report import listed, main

ROOT = Path(__file__).parents[2]
FIDELITY = """# What has never met AWS

<!-- hardware results: begin -->

Neither command has run on its hardware so far.

<!-- hardware results: end -->

The rest.
"""


def result(**changes: Any) -> dict[str, Any]:
    steps = [
        {"name": "tokens", "outcome": "ok", "seconds": 12.5, "detail": "",
         "facts": {"texts": 80, "distance": 0.00012345, "driver": None}, "header": [], "rows": []},
        {"name": "throughput", "outcome": "ok", "seconds": 100.0, "detail": "", "facts": {},
         "header": ["system", "requests/s"], "rows": [["Slipway", 1234.5], ["PyTorch", None]]},
        {"name": "t5-triton", "outcome": "failed", "seconds": 1.0, "detail": "no server"},
    ]  # fmt: skip
    machine = {
        "system": "Linux x86_64", "processor": "AMD EPYC", "core_count": 16,
        "memory_bytes": 2**37, "load_average": 0.5, "versions": {"torch": "2.13.0"},
    }  # fmt: skip
    return {
        "verification": "verify-gpu", "quick": False, "command": "make verify-gpu",
        "started_at": "2026-11-28T10:00:00+00:00", "ended_at": "2026-11-28T10:10:00+00:00",
        "commit": {"id": "0123456789abcdef", "modified": False}, "machine": machine,
        "device": {"name": "NVIDIA A10G", "driver": "580.1"}, "steps": steps,
    } | changes  # fmt: skip


@pytest.fixture
def root(tmp_path):
    for folder in ("docs", "benchmarks/results"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "docs/fidelity.md").write_text(FIDELITY, "utf-8")
    return tmp_path


def report(root: Path, document: Any) -> int:
    given = root / "result.json"
    given.write_text(json.dumps(document), "utf-8")
    return main([str(given)], root=root)


def test_a_result_becomes_a_page_with_machine_driver_versions_and_commit(root):
    assert report(root, result()) == 0
    folder = root / "benchmarks/results"
    assert json.loads((folder / "verify-gpu-nvidia-a10g.json").read_text("utf-8")) == result()
    page = (folder / "verify-gpu-nvidia-a10g.md").read_text("utf-8")
    for part in (
        "# make verify-gpu on NVIDIA A10G\n\n**2 of 3 steps succeeded; t5-triton failed.**\n",
        "| t5-triton | failed | 1 |\n",
        "## tokens\n\n- texts: 80\n- distance: 0.00012345\n- driver: not known\n",
        "| Slipway | 1,234.5 |\n| PyTorch |  |\n",
        "## t5-triton\n\n```\nno server\n```\n",
        "- driver: 580.1\n",
        "10 minutes, commit 0123456789ab.\n- Machine: AMD EPYC, 16 cores, 137.4 GB, Linux",
        "- Versions: `torch 2.13.0`.\n",
    ):
        assert part in page


def test_the_page_of_what_never_ran_lists_each_result_once(root):
    neuron = {"instance type": "inf2.xlarge"}
    assert report(root, result(commit=None)) == 0
    assert report(root, result()) == 0
    assert report(root, result(verification="verify-neuron", device=neuron, command="x")) == 0
    text = (root / "docs/fidelity.md").read_text("utf-8")
    assert text == FIDELITY.replace(
        "Neither command has run on its hardware so far.",
        "- **NVIDIA A10G**, `make verify-gpu`, 2026-11-28, commit 0123456789ab: 2 of 3 steps "
        "succeeded; t5-triton failed "
        "([result](../benchmarks/results/verify-gpu-nvidia-a10g.md)).\n"
        "- **inf2.xlarge**, `x`, 2026-11-28, commit 0123456789ab: 2 of 3 steps succeeded; "
        "t5-triton failed ([result](../benchmarks/results/verify-neuron-inf2-xlarge.md)).",
    )


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (result(quick=True), "is a rehearsal's, with small models: run it without --quick"),
        ({}, "is not a result of make verify-gpu or make verify-neuron"),
    ],
)
def test_what_is_no_result_is_refused_and_nothing_is_written(root, document, message, capsys):
    with pytest.raises(SystemExit) as caught:
        report(root, document)
    assert caught.value.code == 1
    assert capsys.readouterr().err.endswith(f"{root / 'result.json'} {message}\n")
    assert list((root / "benchmarks/results").iterdir()) == []
    assert (root / "docs/fidelity.md").read_text("utf-8") == FIDELITY


def test_the_committed_page_lists_the_committed_results():
    text = (ROOT / "docs/fidelity.md").read_text("utf-8")
    assert listed(text, ROOT / "benchmarks/results") == text
