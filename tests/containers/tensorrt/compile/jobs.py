"""What compile jobs of the TensorRT and the Triton container are given."""

import json

from tests.support.compile_jobs import ROOT
from tests.support.groups import load

SAMPLE = ROOT / "samples" / "gpt2-autocomplete" / "model"
HYPERPARAMETERS = {
    "target": "cpu",
    "max_batch_size": "4",
    "max_input_tokens": "20",
    "max_new_tokens": "12",
}


def keep_one_layer(checkpoint):
    """Leaves the first of the sample's five layers: an export takes as long as it has layers."""
    safetensors_numpy = load("safetensors.numpy", group="torch")
    config, weights = checkpoint / "config.json", checkpoint / "model.safetensors"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"n_layer": 1}))
    tensors = safetensors_numpy.load_file(weights)
    kept = {name: tensors[name] for name in tensors if ".h." not in name or ".h.0." in name}
    assert len(kept) < len(tensors)
    safetensors_numpy.save_file(kept, weights, metadata={"format": "pt"})
