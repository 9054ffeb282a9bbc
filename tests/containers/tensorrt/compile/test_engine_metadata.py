"""engine.json: written, read, and held against the machine that is to run the engine."""

import dataclasses
import hashlib
import json
import re

import pytest

from containers.serving.predictor import ModelLoadError
from containers.tensorrt.engine_metadata import (
    EngineLimits,
    EngineMetadata,
    Gpu,
    check_engine,
    graph_digest,
    read_metadata,
    write_metadata,
)
from containers.tensorrt.model_directory import ModelConfig

METADATA = EngineMetadata(
    tensorrt_version="10.13.3.9",
    compute_capability="sm86",
    gpu_name="NVIDIA A10G",
    graph_sha256="0123456789abcdef" * 4,
    precision="fp16",
    max_batch_size=10,
    max_input_tokens=42,
    max_new_tokens=20,
    layers=48,
    heads=25,
    head_dim=64,
    vocabulary_size=50257,
)
CONFIG = ModelConfig(
    layers=48,
    heads=25,
    head_dim=64,
    max_positions=1024,
    vocabulary_size=50257,
    eos_token_ids=frozenset({50256}),
)


def check(config=CONFIG, limits=METADATA):
    check_engine(METADATA, Gpu("", "sm86"), "10.13.3.9", config, limits)


def test_what_is_written_is_read(tmp_path):
    write_metadata(tmp_path, METADATA)
    assert read_metadata(tmp_path) == METADATA
    document = json.loads((tmp_path / "engine.json").read_text())
    assert document["format_version"] == 1
    assert len(document) == 1 + len(dataclasses.fields(EngineMetadata))


def test_the_last_new_token_is_never_past():
    assert METADATA.max_past_tokens == 42 + 20 - 1


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"format_version": 2}, "has format_version 2, and this container reads 1: publish"),
        (
            {"layers": 0, "heads": "25", "precision": "int8", "batch": 1},
            'engine.json: batch is not a field of it; precision must be one of fp16, fp32, not "int'
            '8"; layers must be a positive whole number, not 0; heads must be a positive whole '
            'number, not "25"; publish the model again, which builds the engine anew',
        ),
        ({"max_batch_size": True}, "max_batch_size must be a positive whole number, not true"),
        ({"compute_capability": "8.6"}, 'compute_capability must be like "sm86", not "8.6"'),
        ({"graph_sha256": "0" * 63}, "graph_sha256 must be 64 hexadecimal digits, not"),
        ({"gpu_name": " "}, 'gpu_name must be a text, not " "'),
        ({"tensorrt_version": 10}, "tensorrt_version must be a text, not 10"),
        ({"precision": ["fp16"]}, 'precision must be one of fp16, fp32, not ["fp16"]'),
    ],
)
def test_fields_that_are_not_usable(tmp_path, changes, problem):
    write_metadata(tmp_path, METADATA)
    path = tmp_path / "engine.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    with pytest.raises(ModelLoadError, match=re.escape(problem)):
        read_metadata(tmp_path)


def test_no_file(tmp_path):
    with pytest.raises(ModelLoadError) as error:
        read_metadata(tmp_path)
    assert str(error.value) == (
        f"{tmp_path} lacks engine.json, which tells what the engine was built for: publish the "
        "model again, which builds the engine anew"
    )


def test_another_model_is_refused_and_smaller_limits_are_not():
    """What is refused beside that is in `test_start_on_standins.py`."""
    check()
    check(limits=EngineLimits(1, 1, 1))
    other = dataclasses.replace(CONFIG, layers=7, heads=7, head_dim=7, vocabulary_size=7)
    with pytest.raises(ModelLoadError) as error:
        check(other)
    assert str(error.value) == (
        "model.engine cannot serve here: its layers is 48, and config.json has 7; its heads is 25, "
        "and config.json has 7; its head_dim is 64, and config.json has 7; its vocabulary_size is "
        "50257, and config.json has 7; publish the model again, which builds the engine anew"
    )


def test_a_graphs_digest_is_that_of_what_sha256sum_prints(tmp_path):
    """Of graph and weights, in the order of their names."""
    graph, weights = tmp_path / "model.onnx", tmp_path / "a.data"
    graph.write_bytes(b"graph")
    weights.write_bytes(b"weights")
    lines = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n"
        for path in (weights, graph)
    ]
    for files, said in (([weights], lines), ([], lines[1:])):
        digest = hashlib.sha256("".join(said).encode()).hexdigest()
        assert graph_digest(graph, files) == digest
