"""engine.json: written, read, and held against the machine that is to run the engine."""

import dataclasses
import hashlib
import json
import re

import pytest

from containers.serving.predictor import ModelLoadError
from containers.tensorrt.engine_metadata import (
    EngineMetadata,
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


def check(metadata=METADATA, **changes):
    asked = {
        "tensorrt_version": "10.13.3.9",
        "compute_capability": "sm86",
        "config": CONFIG,
        "max_batch_size": 10,
        "max_input_tokens": 42,
        "max_new_tokens": 20,
    }
    check_engine(metadata, **(asked | changes))


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


class TestCheck:
    def test_what_the_engine_allows(self):
        check()
        check(max_batch_size=1, max_input_tokens=None, max_new_tokens=1)

    def test_every_mismatch_is_in_one_line(self):
        with pytest.raises(ModelLoadError) as error:
            check(
                tensorrt_version="10.4.0.26",
                compute_capability="sm75",
                config=dataclasses.replace(CONFIG, layers=12),
                max_batch_size=16,
                max_input_tokens=43,
                max_new_tokens=21,
            )
        assert str(error.value) == (
            "model.engine cannot serve here: it was built with TensorRT 10.13.3.9, and this "
            "container has 10.4.0.26; it was built for sm86 (NVIDIA A10G), and this GPU is sm75; "
            "its layers is 48, and config.json has 12; its max_batch_size is 10, and "
            "SLIPWAY_MAX_BATCH_SIZE asks for 16; its max_input_tokens is 42, and "
            "SLIPWAY_MAX_INPUT_TOKENS asks for 43; its max_new_tokens is 20, and "
            "SLIPWAY_MAX_NEW_TOKENS asks for 21; publish the model again, which builds the engine "
            "anew"
        )

    @pytest.mark.parametrize("name", ["layers", "heads", "head_dim", "vocabulary_size"])
    def test_another_model(self, name):
        other = dataclasses.replace(CONFIG, **{name: 7})
        with pytest.raises(ModelLoadError, match=f"its {name} is .*, and config.json has 7;"):
            check(config=other)


class TestGraphDigest:
    def test_is_what_sha256sum_prints(self, tmp_path):
        graph, weights = tmp_path / "model.onnx", tmp_path / "model.onnx.data"
        graph.write_bytes(b"graph")
        weights.write_bytes(b"weights")
        lines = "".join(
            f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n"
            for path in (graph, weights)
        )
        assert graph_digest(graph, [weights]) == hashlib.sha256(lines.encode()).hexdigest()

    def test_covers_graph_and_weights(self, tmp_path):
        graph, weights = tmp_path / "model.onnx", tmp_path / "a.data"
        graph.write_bytes(b"graph")
        weights.write_bytes(b"weights")
        digests = {graph_digest(graph, [weights]), graph_digest(graph, [])}
        weights.write_bytes(b"others")
        digests.add(graph_digest(graph, [weights]))
        graph.write_bytes(b"another")
        digests.add(graph_digest(graph, [weights]))
        assert len(digests) == 4
