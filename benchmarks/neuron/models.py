"""Makes a model directory that both servers read: ONNX graph, TorchScript, tokenizer, manifest.

    python -m benchmarks.neuron.models '{"name": ...}' FOLDER SEED

It runs in a process of its own, so that PyTorch is not in the benchmark's. Shapes without a
committed model get random weights, which take the same time. The sample's weights are read out of
its graph, so that both servers compute the same model.
"""

from __future__ import annotations

import json
import shutil
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.errors import BenchmarkError
from benchmarks.models import Model, ensure_made
from benchmarks.neuron.design import SEQUENCE_LENGTHS, Bert
from benchmarks.program import ROOT, Say
from containers.encoders.manifest import (
    CPU,
    INPUT_NAMES,
    QUESTION_ANSWERING,
    TASK_OUTPUTS,
    Manifest,
    write_manifest,
)

if TYPE_CHECKING:
    import torch
    from transformers import BertForQuestionAnswering

SAMPLE_TOKENIZER = ROOT / "samples" / "bert-qa" / "model" / "tokenizer.json"
"""Every model's: a larger vocabulary than the tokenizer's changes nothing but the file."""

_PACKAGES = ("onnx", "onnxscript", "torch", "transformers")
_GRAPH_FILE = "model.onnx"
_INT8 = "-int8"
# The manifest's number; the container's setting is the most rows of a batch.
_MOST_ROWS = 64


def ensure_model(model: Model, parent: Path, seed: int, say: Say) -> Path:
    """Returns a model's directory, which is made again unless its recipe is unchanged."""
    sample = sorted(path for path in SAMPLE_TOKENIZER.parent.iterdir() if path.is_file())
    compile_sources = sorted((ROOT / "containers/neuron/compile").glob("*.py"))
    export_sources = [ROOT / "containers/tensorrt/export/int8.py"] if _is_int8(model) else []
    return ensure_made(
        model,
        parent,
        seed,
        say,
        maker="benchmarks.neuron.models",
        sources=(Path(__file__), *compile_sources, *sample, *export_sources),
        packages=_PACKAGES,
    )


def in_int8(model: Bert) -> Bert:
    """Returns the model with int8 weights in its ONNX graph, which are those of the same seed."""
    return replace(model, name=f"{model.name}{_INT8}", title=f"{model.title} in int8")


def _is_int8(model: Model) -> bool:
    return model.name.endswith(_INT8)


def make(model: Bert, folder: Path, seed: int) -> None:
    import torch
    from transformers import BertConfig, BertForQuestionAnswering

    from benchmarks.baselines.torch_script import MODEL_FILE
    from containers.encoders.compile.modules import EncoderModule, example_inputs, export_onnx

    torch.manual_seed(seed)
    config = BertConfig(
        num_hidden_layers=model.layers,
        hidden_size=model.width,
        num_attention_heads=model.heads,
        intermediate_size=model.feed_forward,
        vocab_size=model.vocabulary,
        max_position_embeddings=SEQUENCE_LENGTHS[-1],
    )
    made = BertForQuestionAnswering(config).eval()
    if model.sample:
        graph = ROOT / model.sample / _GRAPH_FILE
        shutil.copyfile(graph, folder / _GRAPH_FILE)
        load_weights(made, graph)
    else:
        export_onnx(made, QUESTION_ANSWERING, folder / _GRAPH_FILE)
    module = EncoderModule(made, QUESTION_ANSWERING, INPUT_NAMES).eval()
    inputs = example_inputs(INPUT_NAMES, rows=1, columns=SEQUENCE_LENGTHS[-1])
    with torch.no_grad(), warnings.catch_warnings():
        # Warnings that sizes become constants, as they should, and that torch.jit is deprecated.
        warnings.filterwarnings("ignore", category=torch.jit.TracerWarning)
        warnings.filterwarnings("ignore", category=DeprecationWarning)
        torch.jit.trace(module, inputs).save(str(folder / MODEL_FILE))
    (folder / "config.json").write_text(json.dumps(made.config.to_dict(), indent=2) + "\n", "utf-8")
    shutil.copyfile(SAMPLE_TOKENIZER, folder / "tokenizer.json")
    if _is_int8(model):
        from containers.tensorrt.export.int8 import quantize_graph

        quantize_graph(folder / _GRAPH_FILE)
        (folder / MODEL_FILE).unlink()
    write_manifest(_manifest("int8" if _is_int8(model) else "fp32"), folder)


def load_weights(model: BertForQuestionAnswering, graph: Path) -> None:
    """Gives a model the weights of the graph that was exported from it.

    The exporter keeps all names except the names of the matrices, which it transposes. A matrix is
    recognised by the bias that is added to its product.
    """
    import onnx
    import torch

    loaded = onnx.load(graph).graph
    values = {each.name: onnx.numpy_helper.to_array(each) for each in loaded.initializer}
    products = {node.output[0]: node.input[1] for node in loaded.node if node.op_type == "MatMul"}
    weights: dict[str, torch.Tensor] = {}
    for name in model.state_dict():
        if f"model.{name}" in values:
            weights[name] = torch.tensor(values[f"model.{name}"])
    for node in loaded.node:
        terms = list(node.input) if node.op_type == "Add" else []
        for product, bias in (terms, terms[::-1]) if terms else ():
            if bias.endswith(".bias") and products.get(product) in values:
                name = bias.removeprefix("model.").removesuffix("bias") + "weight"
                weights[name] = torch.tensor(values[products[product]].T.copy())
    missing = sorted(set(model.state_dict()) ^ set(weights))
    if missing:
        raise BenchmarkError(f"{graph} is not a graph of this model: {', '.join(missing[:5])}")
    model.load_state_dict(weights)


def _manifest(dtype: str) -> Manifest:
    return Manifest(
        task=QUESTION_ANSWERING,
        target=CPU,
        runtime="onnxruntime",
        batch_size=_MOST_ROWS,
        pipeline_cores=1,
        dtype=dtype,
        graphs=dict.fromkeys(SEQUENCE_LENGTHS, _GRAPH_FILE),
        inputs=INPUT_NAMES,
        outputs=TASK_OUTPUTS[QUESTION_ANSWERING],
        pooling=None,
        normalize=False,
        versions={},
        compiler_arguments=(),
    )


if __name__ == "__main__":
    make(Bert(**json.loads(sys.argv[1])), Path(sys.argv[2]), int(sys.argv[3]))
