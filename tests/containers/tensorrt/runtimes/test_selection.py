"""Which runtime serves a model directory, where there is neither a GPU nor TensorRT."""

import shutil
import subprocess
import sys
from pathlib import Path

import onnxruntime
import pytest

from containers.serving.predictor import ModelLoadError
from containers.tensorrt.model_directory import read_config
from containers.tensorrt.runtimes import onnx_runtime
from containers.tensorrt.runtimes.selection import open_session
from containers.tensorrt.settings import GenerationSettings
from slipway.image_sources import copy_image_files
from tests.support.servers import captured_logs

ROOT = Path(__file__).parents[4]
SAMPLE = Path("samples/gpt2-autocomplete/model").absolute()
SETTINGS = GenerationSettings(intra_op_threads=1)


def test_a_graph_is_served_by_onnx_runtime():
    with captured_logs() as logs:
        open_session(SAMPLE, read_config(SAMPLE), SETTINGS)
    [line] = logs.events("backend_selected")
    assert line["backend"] == "onnxruntime-cpu"
    assert line["version"] == onnxruntime.__version__
    assert line["available_providers"] == onnxruntime.get_available_providers()
    assert line["reason"] == "the model directory holds model.onnx and no TensorRT engine"


def test_onnx_runtime_with_cuda_is_asked_for_it_first(monkeypatch):
    """A stand-in for ONNX Runtime's GPU build; whether there is a GPU is for it to find out."""
    asked = []
    real = onnxruntime.InferenceSession

    def session(path, options, providers):
        asked.append(providers)
        return real(path, options, providers=["CPUExecutionProvider"])

    monkeypatch.setattr(onnxruntime, "InferenceSession", session)
    monkeypatch.setattr(
        onnxruntime,
        "get_available_providers",
        lambda: ["TensorrtExecutionProvider", "CPUExecutionProvider", "CUDAExecutionProvider"],
    )
    found = onnx_runtime.OnnxRuntimeSession(SAMPLE, read_config(SAMPLE), intra_op_threads=1)
    assert asked == [["CUDAExecutionProvider", "CPUExecutionProvider"]]
    # It found none, and the log will say so.
    assert found.device == "cpu"


def refusal(directory, engine):
    shutil.copytree(SAMPLE, directory, dirs_exist_ok=True)
    (directory / engine).write_bytes(b"plan")
    with pytest.raises(ModelLoadError) as caught:
        open_session(directory, read_config(directory), SETTINGS)
    return str(caught.value)


@pytest.mark.parametrize("missing", ["tensorrt", "cuda.bindings"])
def test_an_engine_is_not_served_from_the_cpu_in_silence(monkeypatch, tmp_path, missing):
    # Whether they are installed here or not.
    monkeypatch.setitem(sys.modules, missing, None)
    message = refusal(tmp_path, "model.engine")
    assert message.startswith(
        "model.engine needs TensorRT and CUDA, which are not installed here ("
    )
    assert message.endswith(
        "): serve it in the container's image, or publish model.onnx without an engine"
    )


@pytest.mark.parametrize("name", ["gpt2.engine", "model.plan"])
def test_an_engine_of_another_name_is_not_served(tmp_path, name):
    assert refusal(tmp_path, name) == (
        f"{name} cannot be served: the engine must be called model.engine, as publishing names it"
    )


def test_the_images_files_hold_all_that_an_engine_needs(tmp_path):
    """Only imported, on modules that have every name."""
    copy_image_files(ROOT, "tensorrt", tmp_path)
    program = (
        "import sys, types\n"
        "class Names(type):\n"
        "    def __getattr__(cls, name): return Names(name, (), {})\n"
        "class Module(types.ModuleType):\n"
        "    def __getattr__(self, name): return Names(name, (), {})\n"
        "for name in ('tensorrt', 'cuda', 'cuda.bindings'):\n"
        "    sys.modules[name] = Module(name)\n"
        "from containers.tensorrt.runtimes.tensorrt import session\n"
        "print(session.__file__)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    session = tmp_path / "containers" / "tensorrt" / "runtimes" / "tensorrt" / "session.py"
    assert done.stdout == f"{session}\n"
