"""The runtime that a model directory is for: engines first, and never the CPU in their place."""

import pytest

from containers.serving.predictor import ModelLoadError
from containers.triton.model_directory import read_config
from containers.triton.sessions import SessionLimits, open_session
from tests.containers.triton.checkpoints import write_checkpoint_files

LIMITS = SessionLimits(max_batch_size=8, max_input_tokens=16, max_new_tokens=12, threads=1)


@pytest.fixture
def model_dir(tmp_path):
    write_checkpoint_files(tmp_path)
    return tmp_path


def refusal(model_dir):
    with pytest.raises(ModelLoadError) as caught:
        open_session(model_dir, read_config(model_dir), LIMITS)
    return str(caught.value)


def test_engines_without_tensorrt(model_dir):
    """There are graphs, and they are of no use: a GPU is paid for on purpose."""
    for name in ("encoder", "decoder"):
        (model_dir / f"{name}.engine").touch()
        (model_dir / f"{name}.onnx").touch()
    assert refusal(model_dir) == (
        "encoder.engine and decoder.engine need TensorRT and CUDA, which are not installed here "
        "(No module named 'tensorrt'): serve them in the container's image, or publish the model "
        "for the CPU"
    )


def test_half_of_the_engines(model_dir):
    (model_dir / "encoder.engine").touch()
    (model_dir / "decoder.onnx").touch()
    assert refusal(model_dir) == f"{model_dir} lacks decoder.engine"


def test_graphs_that_are_no_graphs(model_dir):
    for name in ("encoder.onnx", "decoder.onnx"):
        (model_dir / name).write_bytes(b"no graph")
    assert refusal(model_dir).startswith("ONNX Runtime cannot load encoder.onnx: ")
