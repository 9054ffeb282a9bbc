"""What Triton's Python back end loads, without the server: its runtime, errors, and its end.

Triton gives a model's process a module that no package has, so a stand-in takes its place here.
`test_server.py` has the real one.
"""

import json
import os
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from containers.serving.predictor import ModelLoadError, ModelLostError
from containers.triton.model_directory import read_config
from containers.triton.sessions import SessionLimits, open_session
from tests.containers.triton.checkpoints import write_checkpoint_files
from tests.support.messages import message_of

ROOT = Path(__file__).parents[3]
SAMPLE = ROOT / "samples/t5-spelling/model"


class Ended(BaseException):
    """Stands for the end of the process."""


def stand_in():
    module = ModuleType("triton_python_backend_utils")

    class TritonError:
        INVALID_ARG = "invalid"

        def __init__(self, message, code):
            self.message, self.code = message, code

    def response(tensors=None, *, error=None):
        return SimpleNamespace(tensors=tensors, error=error)

    vars(module).update(
        TritonError=TritonError,
        InferenceResponse=response,
        Tensor=lambda name, array: SimpleNamespace(name=name, array=array),
        get_input_tensor_by_name=lambda request, name: SimpleNamespace(
            as_numpy=lambda: request[name]
        ),
    )
    return module


@pytest.fixture
def model(monkeypatch):
    monkeypatch.setitem(sys.modules, "triton_python_backend_utils", stand_in())
    monkeypatch.delitem(sys.modules, "containers.triton.model", raising=False)
    import containers.triton.model as module

    monkeypatch.setattr(module, "hold_connection", lambda *_: None)
    monkeypatch.setattr(module, "configure_logging", lambda *_: None)
    settings = {
        "intra_op_threads": "1",
        "max_batch_size": "8",
        "max_input_tokens": "16",
        "max_new_tokens": "16",
        "model_dir": str(SAMPLE),
        "socket": "none",
    }
    parameters = {name: {"string_value": value} for name, value in settings.items()}
    loaded = module.TritonPythonModel()
    loaded.initialize(
        {
            "model_config": json.dumps({"name": "model", "parameters": parameters}),
            "model_instance_device_id": "0",
            "model_instance_name": "model_0_0",
        }
    )
    yield loaded
    sys.modules.pop("containers.triton.model", None)


def request(*texts):
    return {"TEXT": np.array([[text] for text in texts], dtype=object)}


def test_each_request_gets_its_own_texts_or_its_own_problem(model):
    good, bad, long, two = model.execute(
        [request(b"instnace"), request(b"\xff"), request(b"a" * 17), request(b"bukcet", b"scurity")]
    )
    assert good.tensors[0].array.tolist() == [[b"instance"]]
    assert two.tensors[0].array.tolist() == [[b"bucket"], [b"security"]]
    assert bad.error.message == "TEXT is not UTF-8: byte 0 of a text"
    assert "the limit is 16" in long.error.message
    assert {bad.error.code, long.error.code} == {"invalid"}


def test_a_batch_of_bad_requests_computes_nothing(model, monkeypatch):
    monkeypatch.setattr(model, "_session", None)
    (only,) = model.execute([request(b"\xff")])
    assert only.error is not None


def test_a_lost_gpu_ends_the_process(model, monkeypatch):
    codes = []

    def end(code):
        codes.append(code)
        raise Ended

    def lose(*_):
        raise ModelLostError("cudaStreamSynchronize: an illegal memory access")

    monkeypatch.setattr(os, "_exit", end)
    monkeypatch.setattr(model, "_session", SimpleNamespace(encode=lose))
    with pytest.raises(Ended):
        model.execute([request(b"instnace")])
    assert codes == [1]


# The runtime that a model directory is for: engines first, and never the CPU in their place.

LIMITS = SessionLimits(max_batch_size=8, max_input_tokens=16, max_new_tokens=12, threads=1)


@pytest.fixture
def model_dir(tmp_path):
    write_checkpoint_files(tmp_path)
    return tmp_path


def refusal(model_dir):
    return message_of(ModelLoadError, open_session, model_dir, read_config(model_dir), LIMITS)


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
