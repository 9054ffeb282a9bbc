"""Exported graphs compute what their models do, whatever is padded."""

import functools
from pathlib import Path

import pytest

from containers.encoders.batches import batch_arrays
from containers.encoders.manifest import INPUT_NAMES, TASK_OUTPUTS, Manifest
from containers.encoders.onnx_session import OnnxRuntimeSession
from containers.serving.predictor import ModelLoadError
from tests.containers.neuron.compile.jobs import SIZES
from tests.support.groups import TORCH_MARKS, load
from tests.support.messages import message_of

torch = load("torch", group="torch")
transformers = load("transformers", group="torch")
for name in ("onnx", "onnxscript"):
    load(name, group="torch")

from containers.encoders.compile.modules import export_onnx  # noqa: E402
from containers.neuron.runtimes.torch_script import TorchScriptSession  # noqa: E402
from tests.containers.neuron.compile.random_checkpoints import (  # noqa: E402
    HEADS,
    ROWS,
    assert_computed,
)

pytestmark = [*TORCH_MARKS]

CASES = [
    ("Bert", "question-answering"),
    ("Bert", "embeddings"),
    ("Roberta", "sequence-classification"),
]


def make_model(family, task):
    torch.manual_seed(3)
    sizes = SIZES | {"vocab_size": 50, "num_hidden_layers": 1}
    labels = 2 if task == "question-answering" else 3
    config = getattr(transformers, f"{family}Config")(**sizes, num_labels=labels)
    return getattr(transformers, f"{family}{HEADS[task]}")(config).eval()


def manifest(task, inputs, runtime, graphs):
    return Manifest(
        task=task,
        target="cpu",
        runtime=runtime,
        batch_size=2,
        pipeline_cores=1,
        dtype="fp32",
        graphs=graphs,
        inputs=inputs,
        outputs=TASK_OUTPUTS[task],
        pooling="mean" if task == "embeddings" else None,
        normalize=False,
        versions={},
    )


@pytest.fixture(scope="module")
def export(tmp_path_factory):
    """Exports a model, once for all tests; returns the graph's directory and its inputs."""

    @functools.cache
    def make(family, task):
        directory = tmp_path_factory.mktemp("graph")
        return directory, export_onnx(make_model(family, task), task, directory / "model.onnx")

    return make


@pytest.mark.parametrize(("family", "task"), CASES)
def test_a_graph_computes_what_its_model_does(export, family, task):
    model = make_model(family, task)
    directory, inputs = export(family, task)
    assert inputs == INPUT_NAMES[: 2 if family == "Roberta" else 3]
    # Not the length or the number of rows that it was traced with; a bucket for each.
    graphs = {8: "model.onnx", 16: "model.onnx"}
    session = OnnxRuntimeSession(
        directory, manifest(task, inputs, "onnxruntime", graphs), threads=1
    )
    for bucket, rows in ((8, ROWS), (16, ROWS[::-1]), (16, ROWS[:1]), (8, ROWS * 2)):
        arrays = batch_arrays(rows, bucket=bucket, batch_size=None, pad_token_id=0)
        outputs = session.run(arrays)
        assert tuple(outputs) == TASK_OUTPUTS[task]
        assert_computed(outputs, model, task, rows)


def test_the_same_model_gives_the_same_bytes(export, tmp_path):
    directory, _ = export("Bert", "question-answering")
    first, second = directory / "model.onnx", tmp_path / "second.onnx"
    export_onnx(make_model("Bert", "question-answering"), "question-answering", second)
    assert first.read_bytes() == second.read_bytes()
    assert str(Path.cwd()).encode() not in first.read_bytes()


def test_a_graph_of_another_task_is_refused(export):
    directory, inputs = export("Bert", "embeddings")
    described = manifest("question-answering", inputs[:2], "onnxruntime", {8: "model.onnx"})
    assert message_of(ModelLoadError, OnnxRuntimeSession, directory, described, threads=1) == (
        "model.onnx is not the manifest's graph: input token_type_ids is not in the manifest; "
        "output start_logits is missing; output end_logits is missing"
    )


def test_what_is_no_graph_is_refused_with_its_name(tmp_path):
    for session, runtime, name, message in (
        (TorchScriptSession, "torchscript", "model.pt", "torchscript cannot load model.pt: "),
        (OnnxRuntimeSession, "onnxruntime", "model.onnx", "ONNX Runtime cannot load model.onnx: "),
    ):
        (tmp_path / name).write_bytes(b"no graph")
        described = manifest("embeddings", INPUT_NAMES[:2], runtime, {8: name})
        found = message_of(ModelLoadError, session, tmp_path, described, threads=1)
        assert found.startswith(message)
