"""Weights that lie beside their graph, as those of large models do: written, checked and served."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from containers.serving.predictor import ModelLoadError
from containers.tensorrt.model_directory import check_files, read_config
from containers.tensorrt.runtimes.onnx_runtime import OnnxRuntimeSession
from tests.support.groups import load

if TYPE_CHECKING:
    from transformers import GPT2LMHeadModel

torch = load("torch", group="torch")
transformers = load("transformers", group="torch")
onnx = load("onnx", group="torch")
load("onnxscript", group="torch")

from tokenizers import Tokenizer  # noqa: E402  (after the skips, with the rest)

from containers.tensorrt.export import graph_files  # noqa: E402
from containers.tensorrt.export.gpt2 import export_gpt2_step  # noqa: E402
from containers.tensorrt.export.parity import check_step_graph  # noqa: E402

pytestmark = [
    pytest.mark.torch,
    # transformers and torch deprecate each other's and their own names in every release.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]

ROOT = Path(__file__).parents[3]
SAMPLE = ROOT / "samples" / "gpt2-autocomplete" / "model"
PROMPT = "Specifies the name of the"


@pytest.fixture(scope="module")
def model() -> GPT2LMHeadModel:
    """The sample's first layer of five: an export takes as long as it has layers."""
    config = transformers.GPT2Config.from_pretrained(SAMPLE, n_layer=1)
    model = transformers.GPT2LMHeadModel.from_pretrained(SAMPLE, config=config, dtype=torch.float32)
    return model.eval()


@pytest.fixture(scope="module")
def directory(model: GPT2LMHeadModel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model directory as exporting makes it of a model above the threshold."""
    made = tmp_path_factory.mktemp("model")
    for name in ("generation_config.json", "tokenizer.json"):
        shutil.copy(SAMPLE / name, made)
    settings = json.loads((SAMPLE / "config.json").read_text()) | {"n_layer": 1}
    (made / "config.json").write_text(json.dumps(settings))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(graph_files, "_LARGEST_INLINE_WEIGHTS_BYTES", 1_000_000)
        export_gpt2_step(model, made / "model.onnx")
    return made


@pytest.fixture(scope="module")
def inside(model: GPT2LMHeadModel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph with its weights inside, exported where an export before left a file of weights."""
    made: Path = tmp_path_factory.mktemp("inside")
    (made / "model.onnx.data").write_bytes(b"of an export before")
    export_gpt2_step(model, made / "model.onnx")
    return made


def test_all_weights_are_in_one_file_beside_the_graph(
    model: GPT2LMHeadModel, directory: Path
) -> None:
    assert sorted(path.name for path in directory.glob("model.onnx*")) == [
        "model.onnx", "model.onnx.data",
    ]  # fmt: skip
    assert (directory / "model.onnx").stat().st_size < 100_000
    parameters = sum(4 * parameter.numel() for parameter in model.parameters())
    assert (directory / "model.onnx.data").stat().st_size >= parameters
    graph = onnx.load(directory / "model.onnx", load_external_data=False).graph
    spans = []
    for initialiser in graph.initializer:
        entries = {entry.key: entry.value for entry in initialiser.external_data}
        if entries:
            assert entries["location"] == "model.onnx.data"
            spans.append((int(entries["offset"]), int(entries["length"])))
        else:
            assert len(initialiser.raw_data) <= 256
    # One after the other, to the end.
    ends = [0, *(offset + length for offset, length in spans)]
    assert [offset for offset, _ in spans] == ends[:-1]
    assert ends[-1] == (directory / "model.onnx.data").stat().st_size


def test_the_check_finds_them(model: GPT2LMHeadModel, directory: Path) -> None:
    checked = check_step_graph(directory / "model.onnx", model, [[5, 6, 7, 8], [9]], new_tokens=5)
    assert checked.largest_logit_difference < 1e-3


def test_another_threshold_changes_only_where_they_are(directory: Path, inside: Path) -> None:
    # The file would be taken for the weights of the graph beside it.
    assert list(inside.iterdir()) == [inside / "model.onnx"]
    joined = onnx.load(directory / "model.onnx")
    for initialiser in joined.graph.initializer:
        # Says that the values are inside, which they are where nothing is said.
        initialiser.ClearField("data_location")
    assert joined.SerializeToString() == (inside / "model.onnx").read_bytes()


def test_the_containers_session_reads_them(directory: Path, inside: Path) -> None:
    check_files(directory)
    ids = Tokenizer.from_file(str(SAMPLE / "tokenizer.json")).encode(PROMPT).ids
    step = (np.array([ids]), np.ones((1, len(ids)), dtype=np.int64), np.arange(len(ids))[None])
    logits, expected = (
        OnnxRuntimeSession(at, read_config(directory), intra_op_threads=1)
        .prefill(*step)[0]
        .of_rows(0, 1)
        for at in (directory, inside)
    )
    np.testing.assert_allclose(logits, expected, atol=1e-3)


def test_a_model_directory_without_them_is_refused(directory: Path, tmp_path: Path) -> None:
    for path in directory.iterdir():
        if path.name != "model.onnx.data":
            shutil.copy(path, tmp_path)
    with pytest.raises(ModelLoadError, match=r"lacks model\.onnx\.data \(weights of model\.onnx\)"):
        check_files(tmp_path)
