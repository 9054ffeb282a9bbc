"""What compile jobs of the TensorRT container are given."""

from __future__ import annotations

from tests.support.compile_jobs import ROOT

SAMPLE = ROOT / "samples" / "gpt2-autocomplete" / "model"
HYPERPARAMETERS = {
    "target": "cpu",
    "max_batch_size": "4",
    "max_input_tokens": "20",
    "max_new_tokens": "12",
}
