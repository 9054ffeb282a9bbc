"""`slipway triton-repository`: a model repository for one graph."""

import shutil
from pathlib import Path

import pytest

from slipway.planning.directory import Directory
from slipway.planning.families.triton.repository import check_repository
from slipway.publishing.families.triton import graph
from slipway.publishing.families.triton.graph import Serving, Tensor, Tensors, config
from tests.support.pages import ROOT
from tests.support.projects import refusal, write_project

BERT = ROOT / "samples/bert-qa/model/model.onnx"
ENCODER = ROOT / "samples/t5-spelling/model/encoder.onnx"
SERVING = Serving(8, 0, 1, None)
IMAGE = Tensor("image", "TYPE_FP32", [-1, 3, 224, 224])
SCORES = Tensor("scores", "TYPE_FP32", [-1, 1000])
TOKENS = Tensor("input_ids", "TYPE_INT64", [-1, -1])


@pytest.fixture
def run(tmp_path, monkeypatch, slipway_command):
    """Runs the command in a new project."""
    monkeypatch.chdir(write_project(tmp_path, {}))
    return slipway_command.of("triton-repository")


def read(root: Path, name: str = "search") -> Directory:
    top = root / "triton" / name
    files = {str(path.relative_to(top)): path for path in top.rglob("*") if path.is_file()}
    return Directory(
        path=f"triton/{name}",
        field=("serving", "repository"),
        sizes_bytes={path: file.stat().st_size for path, file in files.items()},
        texts={path: file.read_bytes() for path, file in files.items() if "pbtxt" in path},
    )


def test_an_onnx_graph_gets_a_repository_that_slipway_accepts(run, tmp_path):
    output = run.done("search", "--graph", str(BERT), "--instance-group-count", "2")
    assert output == (
        "triton/search written. Next: `slipway init search --container triton "
        "--repository triton/search`.\n"
    )
    directory = read(tmp_path)
    assert set(directory.sizes_bytes) == {"search/config.pbtxt", "search/1/model.onnx"}
    found = check_repository(
        directory, default_model=None, release="26.05", variables={}, without_gpu="ml.c5.xlarge"
    )
    assert (found.problems, found.warnings) == ([], [])
    assert directory.texts["search/config.pbtxt"].decode() == (
        'name: "search"\n'
        'backend: "onnxruntime"\n'
        "max_batch_size: 8\n"
        'input { name: "input_ids" data_type: TYPE_INT64 dims: [ -1 ] }\n'
        'input { name: "attention_mask" data_type: TYPE_INT64 dims: [ -1 ] }\n'
        'input { name: "token_type_ids" data_type: TYPE_INT64 dims: [ -1 ] }\n'
        'output { name: "start_logits" data_type: TYPE_FP32 dims: [ -1 ] }\n'
        'output { name: "end_logits" data_type: TYPE_FP32 dims: [ -1 ] }\n'
        "dynamic_batching { max_queue_delay_microseconds: 0 }\n"
        "instance_group { count: 2 }\n"
        "response_cache { enable: false }\n"
    )


def test_files_of_external_data_come_along(run, tmp_path):
    source = tmp_path / "export"
    shutil.copytree(ENCODER.parent, source)
    # A file whose name stands in the graph, but which holds no weights.
    (source / "input_ids").touch()
    run.done("search", "--graph", str(source / ENCODER.name))
    version = tmp_path / "triton/search/search/1"
    assert {path.name for path in version.iterdir()} == {"model.onnx", "model.safetensors"}


def test_a_plan_of_tensorrt_leaves_its_tensors_to_triton_and_is_not_overwritten(run, tmp_path):
    plan = tmp_path / "spelling.plan"
    plan.write_bytes(b"engine")
    run.done("search", "--graph", str(plan))
    directory = read(tmp_path)
    assert set(directory.sizes_bytes) == {"search/config.pbtxt", "search/1/model.plan"}
    assert "input" not in directory.texts["search/config.pbtxt"].decode()
    assert 'backend: "tensorrt"' in directory.texts["search/config.pbtxt"].decode()
    found = check_repository(
        directory, default_model=None, release="26.05", variables={}, without_gpu=None
    )
    assert not found.problems
    assert "triton/search is there already" in run.refused("search", "--graph", str(BERT))


def warmups(tensor: Tensor, serving: Serving) -> list[str]:
    text = config("m", "onnxruntime", Tensors([tensor], [SCORES]), serving)
    return [line.strip() for line in text.partition("model_warmup")[2].splitlines() if ":" in line]


def test_a_graph_of_fixed_shapes_is_warmed_up_alone_and_in_a_full_batch():
    inputs = 'inputs { key: "image" value { data_type: TYPE_FP32 dims: [ 3, 224, 224 ] '
    assert warmups(IMAGE, SERVING) == [
        'name: "1 together"', "batch_size: 1", f"{inputs}zero_data: true }} }}",
        'name: "8 together"', "batch_size: 8", f"{inputs}zero_data: true }} }}",
    ]  # fmt: skip


def test_dynamic_shapes_have_a_length_and_graphs_without_batches_their_first_dimension():
    assert warmups(TOKENS, SERVING) == []
    found = warmups(TOKENS, Serving(1, 0, 1, 64))
    assert found[1:] == [
        "batch_size: 1",
        'inputs { key: "input_ids" value { data_type: TYPE_INT64 dims: [ 64 ] zero_data: true } }',
    ]
    fixed = Tensor("image", "TYPE_FP32", [1, 3, 8, 8])
    text = config("m", "onnxruntime", Tensors([fixed], [fixed]), Serving(0, 0, 1, None))
    assert 'input { name: "image" data_type: TYPE_FP32 dims: [ 1, 3, 8, 8 ] }' in text
    assert "dynamic_batching" not in text
    assert "batch_size: 0" in text


def test_what_cannot_be_written_is_refused_and_leaves_nothing(run, tmp_path):
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"no graph")
    cases = {
        "nowhere.onnx": "there is no file nowhere.onnx",
        str(ROOT / "README.md"): "README.md is no graph",
        str(broken): "ONNX Runtime cannot load",
    }
    for file, message in cases.items():
        errors = run.refused("search", "--graph", file)
        assert message in errors
        assert "Traceback" not in errors
    for name in ("foundation", "A b"):
        assert "no model may be called" in run(name, "--graph", str(BERT))[2]
    assert not (tmp_path / "triton").exists()


def test_a_graph_of_one_batch_size_names_the_remedy(tmp_path, monkeypatch):
    fixed = Tensor("image", "TYPE_FP32", [1, 3, 8, 8])
    monkeypatch.setattr(graph, "_read_onnx", lambda _: Tensors([fixed, TOKENS], [SCORES]))
    (problem,) = refusal(graph.write_repository, tmp_path / "new", "m", BERT, SERVING).problems
    assert problem.message.endswith("has no dimension for batches: image begins with a fixed size")
    assert "--max-batch-size 0" in problem.remedy
    assert not (tmp_path / "new").exists()
    graph.write_repository(tmp_path / "new", "m", BERT, Serving(0, 0, 1, None))
    assert (tmp_path / "new/m/1/model.onnx").is_file()
