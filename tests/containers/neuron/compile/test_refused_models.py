"""Refusals of a compile job after PyTorch has loaded the model: weights and graphs."""

import copy
import json

import numpy as np
import pytest

from containers.encoders.manifest import NEURON_FILE
from containers.jobs.report import CompileError
from tests.support.groups import load
from tests.support.messages import message_of

torch = load("torch", group="torch")
safetensors_torch = load("safetensors.torch", group="torch")

from containers.encoders.compile import parity  # noqa: E402
from containers.encoders.compile.modules import EncoderModule, input_names  # noqa: E402
from containers.neuron.compile import compilers, worker  # noqa: E402  (after the skips)
from containers.neuron.compile.worker import compile_order  # noqa: E402
from tests.containers.neuron.compile.random_checkpoints import (  # noqa: E402
    MARKS,
    order_for,
    save_checkpoint,
)

pytestmark = MARKS


@pytest.fixture
def checkpoint(tmp_path):
    return tmp_path / "checkpoint"


@pytest.fixture
def module(checkpoint):
    model = save_checkpoint(checkpoint)
    return EncoderModule(model, "question-answering", input_names(model)).eval()


def refusal(checkpoint, **changes):
    scratch = checkpoint.parent / "scratch"
    scratch.mkdir()
    order = order_for(checkpoint, checkpoint.parent, **changes)
    message = message_of(CompileError, compile_order, order, scratch)
    assert not (scratch / NEURON_FILE).exists()
    return message


def test_a_model_that_no_onnx_graph_holds(checkpoint, monkeypatch):
    weight_bytes = 4 * save_checkpoint(checkpoint).num_parameters()
    monkeypatch.setattr(worker, "_LARGEST_ONNX_BYTES", weight_bytes)
    for name in ("onnx", "onnxscript"):
        load(name, group="torch")
    assert refusal(checkpoint, runtime="onnxruntime") == (
        f"the model has {weight_bytes} bytes of weights, and an ONNX graph less than "
        f"{weight_bytes}: compile it with the hyperparameter runtime=torchscript"
    )


def test_a_head_that_was_never_trained(checkpoint):
    """The form of a checkpoint whose config does not say what it is."""
    save_checkpoint(checkpoint, task="embeddings")
    assert refusal(checkpoint) == (
        f"the checkpoint in {checkpoint} lacks 2 weights: qa_outputs.bias, qa_outputs.weight"
    )


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_not_finite(checkpoint, value):
    model = save_checkpoint(checkpoint)
    weights = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    weights["qa_outputs.bias"][0] = value
    safetensors_torch.save_file(weights, checkpoint / "model.safetensors", {"format": "pt"})
    assert refusal(checkpoint) == "1 weights are not finite: qa_outputs.bias"


def test_weights_of_other_sizes(checkpoint):
    save_checkpoint(checkpoint)
    path = checkpoint / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"intermediate_size": 48}))
    assert refusal(checkpoint).startswith(f"cannot load the checkpoint in {checkpoint}: ")


def test_a_graph_that_computes_something_else(checkpoint, monkeypatch):
    save_checkpoint(checkpoint)
    trace = compilers.cpu_trace

    def of_other_weights(module, example):
        other = copy.deepcopy(module)
        with torch.no_grad():
            other.model.qa_outputs.bias.add_(1)
        return trace(other, example)

    monkeypatch.setattr(compilers, "cpu_trace", of_other_weights)
    assert refusal(checkpoint).startswith(
        "the graph for 8 tokens does not compute what the model does: it differs by 1 where "
        "the largest number is "
    )


def difference(checkpoint, module, run):
    """What the comparison of a model with a run of its graph says."""
    arguments = (run, module, input_names(module.model), order_for(checkpoint, checkpoint), 16)
    return message_of(CompileError, parity.check_graph, *arguments)


def test_a_graph_that_ignores_the_mask(checkpoint, module):
    def unmasked(arrays):
        changed = arrays | {"attention_mask": np.ones_like(arrays["attention_mask"])}
        with torch.no_grad():
            computed = module(*(torch.from_numpy(changed[name]) for name in inputs))
        return tuple(each.numpy() for each in computed)

    inputs = input_names(module.model)
    assert "does not compute what the model does" in difference(checkpoint, module, unmasked)


@pytest.mark.parametrize(
    ("shape", "fill", "shown"), [((2, 16, 2), 0.0, "[16, 2]"), ((2, 16), float("nan"), "[16]")]
)
def test_outputs_that_are_none(checkpoint, module, shape, fill, shown):
    output = np.full(shape, fill, np.float32)
    assert difference(checkpoint, module, lambda _: (output, output)) == (
        "the graph for 16 tokens does not compute what the model does: its output has the "
        f"shape {shown} for [16], or holds numbers that are not finite"
    )
