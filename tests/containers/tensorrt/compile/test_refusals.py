"""What a compile job refuses, before it loads anything large: exit code 1, one line, no model."""

import importlib.util
import json
import shutil
import sys

import pytest

from containers.jobs.report import CompileError
from containers.tensorrt.compile import command, stages
from containers.tensorrt.compile.gpu import checked_gpu
from containers.tensorrt.compile.job import read_hyperparameters
from containers.tensorrt.engine_metadata import Gpu
from tests.containers.tensorrt.runtimes.cuda_standin import cudaError_t
from tests.containers.tensorrt.runtimes.machine import standin_machine
from tests.support.compile_jobs import Job


def run_here(job, **variables):
    return job.run_here(command.run, **variables)


def refusal(job, run=run_here):
    return job.refusal(run(job))


def change_config(job, **changes):
    path = job.weights / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


class TestHyperparameters:
    @pytest.mark.parametrize(
        ("target", "dtype", "precision"),
        [("sm86", {}, "fp16"), ("sm86", {"dtype": "fp32"}, "fp32"), ("cpu", {}, "fp32")],
    )
    def test_an_engine_has_the_precision_that_is_asked_for(self, job, target, dtype, precision):
        job.set_hyperparameters(target=target, **dtype)
        read, problems = read_hyperparameters(job.input_config)
        assert problems == []
        assert read.precision == precision

    def test_all_problems_are_reported_together(self, job):
        job.set_hyperparameters(
            target="gpu",
            max_batch_size="0",
            max_input_tokens="1_000",
            max_new_tokens=None,
            dtype="bf16",
            keep_graph="yes",
            **{"max_new_token": "5"},
        )
        (job.weights / "config.json").unlink()
        assert refusal(job, Job.run) == (
            'hyperparameter target="gpu" is not cpu, or a compute capability such as "sm86"; '
            'hyperparameter dtype="bf16" is not fp16 or fp32; '
            'hyperparameter keep_graph="yes" is not true or false; '
            'hyperparameter max_batch_size="0" is not a whole number from 1 to 1024; '
            'hyperparameter max_input_tokens="1_000" is not a whole number from 1 to 1000000; '
            "hyperparameter max_new_tokens is missing: it is a whole number from 1 to 1000000; "
            "hyperparameter max_new_token is unknown (did you mean max_new_tokens?); "
            f"{job.weights} lacks config.json: it must be a Hugging Face checkpoint"
        )

    @pytest.mark.parametrize(
        ("content", "problem"),
        [
            (b"", "hyperparameters.json is not valid JSON: Expecting value"),
            (b'{"max_batch_size": 4}', "hyperparameter max_batch_size must be a text, not 4"),
            (b'{"target": null}', "hyperparameter target must be a text, not null"),
            ('{"max_batch_size": "٤"}'.encode(), "is not a whole number from 1 to 1024"),
        ],
        ids=["empty", "a number", "null", "other digits"],
    )
    def test_malformed(self, job, content, problem):
        job.write_hyperparameters(content)
        assert problem in refusal(job)

    def test_missing_file(self, job):
        path = job.input_config / "hyperparameters.json"
        path.unlink()
        assert refusal(job) == f"{path} is missing: start the job with HyperParameters"

    def test_more_tokens_than_positions(self, job):
        positions = json.loads((job.weights / "config.json").read_text())["n_positions"]
        job.set_hyperparameters(max_input_tokens=str(positions), max_new_tokens="1")
        assert refusal(job) == (
            f"max_input_tokens={positions} and max_new_tokens=1 need {positions + 1} positions, "
            f"and the checkpoint has n_positions={positions}: lower one of them"
        )


class TestCheckpoint:
    def test_empty_channel(self, job):
        shutil.rmtree(job.weights)
        job.weights.mkdir()
        assert refusal(job) == (
            f"{job.weights} lacks config.json: it must be a Hugging Face checkpoint; "
            f"{job.weights} has no weights: neither model.safetensors nor pytorch_model.bin, whole "
            f"or in shards with an index; {job.weights} lacks tokenizer.json, and vocab.json and "
            "merges.txt to make it from"
        )

    @pytest.mark.parametrize(
        ("changes", "problem"),
        [
            (
                {"model_type": "llama"},
                'config.json has model_type "llama": this container compiles gpt2 only; serve '
                "other models with container: lmi",
            ),
            ({"model_type": None}, "config.json has model_type null: this container compiles"),
            (
                {"architectures": ["GPT2ForSequenceClassification"]},
                'config.json has architectures ["GPT2ForSequenceClassification"], and only a '
                "language model can be compiled: GPT2LMHeadModel, GPT2DoubleHeadsModel, GPT2Model",
            ),
            (
                {"add_cross_attention": True},
                "config.json has add_cross_attention: the decoder of an encoder-decoder model "
                "cannot be compiled alone",
            ),
            ({"n_layer": 0}, "config.json: n_layer must be a positive whole number, not 0"),
            ({"n_head": 7}, "is not a multiple of n_head=7"),
            (
                {"vocab_size": 100},
                "tokenizer.json has 4096 tokens, and config.json has vocab_size 100: they are not "
                "of one model",
            ),
        ],
    )
    def test_config(self, job, changes, problem):
        change_config(job, **changes)
        assert problem in refusal(job)

    @pytest.mark.parametrize(
        ("name", "content", "problem"),
        [
            ("config.json", b"", "config.json is not valid JSON: Expecting value"),
            ("generation_config.json", b"{", "generation_config.json is not valid JSON"),
            ("tokenizer.json", b"{}", "cannot load"),
            ("tokenizer.json", b"\x00\xff", "cannot load"),
            ("model.safetensors", b"", "model.safetensors is no safetensors file, or cut off"),
            (
                "model.safetensors",
                b"\x02" + bytes(7) + b"[]",
                "has a header that is no safetensors header: copy the checkpoint again",
            ),
            ("pytorch_model.bin", b"", "/pytorch_model.bin is empty: copy the checkpoint again"),
            (
                "model.safetensors.index.json",
                b"{}",
                "has no weight_map: it must name the file of each weight",
            ),
            (
                "model.safetensors.index.json",
                b'{"weight_map": {"a": "one.safetensors", "b": "two.safetensors"}}',
                "lacks one.safetensors, two.safetensors (model.safetensors.index.json names them)",
            ),
            (
                "model.safetensors.index.json",
                b'{"weight_map": {"a": "../model.safetensors"}}',
                "names files outside its directory: ../model.safetensors",
            ),
        ],
    )
    def test_files(self, job, name, content, problem):
        if name in ("pytorch_model.bin", "model.safetensors.index.json"):
            (job.weights / "model.safetensors").unlink()
        (job.weights / name).write_bytes(content)
        assert problem in refusal(job)

    @pytest.mark.parametrize("cut_bytes", [1, 4_000_000, 4_440_000])
    def test_weights_that_are_cut_off(self, job, cut_bytes):
        path = job.weights / "model.safetensors"
        whole = path.read_bytes()
        path.write_bytes(whole[:-cut_bytes])
        assert refusal(job) == (
            f"{path} has {len(whole) - cut_bytes} bytes, and its header tells of {len(whole)}: "
            "copy the checkpoint again"
        )


class TestOutput:
    def test_not_writable(self, job, tmp_path):
        file = tmp_path / "file"
        file.touch()
        job.model = file / "model"
        assert refusal(job) == f"cannot write to {job.model}: Not a directory"

    def test_not_empty(self, job):
        (job.model / "model.onnx").write_bytes(b"of another run")
        assert run_here(job) == 1
        assert job.failure == (
            f"{job.model} is not empty, it holds model.onnx: the model needs a directory of its own"
        )
        assert (job.model / "model.onnx").read_bytes() == b"of another run"

    def test_reason_that_cannot_be_written(self, job, tmp_path):
        file = tmp_path / "file"
        file.touch()
        job.output = file / "output"
        job.write_hyperparameters(b"[]")
        assert run_here(job) == 1
        assert "must hold a JSON object" in job.named("compile_failed")[0]["message"]
        assert job.named("failure_file_not_written")[0]["message"] == (
            f"cannot write {job.output / 'failure'}: Not a directory"
        )

    def test_empty_variable(self, job):
        assert run_here(job, SM_CHANNEL_WEIGHTS=" ") == 1
        assert job.failure == (
            "SM_CHANNEL_WEIGHTS is empty: unset it for the default, /opt/ml/input/data/weights"
        )

    def test_long_reasons_are_cut_where_sagemaker_cuts_them(self, job):
        job.write_hyperparameters(json.dumps({f"unknown_{i}": "é" for i in range(100)}).encode())
        assert len(refusal(job)) > 1024
        assert len(job.failure) == 1024


class TestMachine:
    """What is missing on the machine; nothing of it is loaded to find out."""

    @pytest.fixture(autouse=True)
    def absent(self, monkeypatch):
        """The packages that are not installed."""
        names = set()
        find = importlib.util.find_spec
        monkeypatch.setattr(
            importlib.util,
            "find_spec",
            lambda name: None if name in names else find("json"),
        )
        return names

    def refusal(self, check, *arguments):
        with pytest.raises(CompileError) as caught:
            check(*arguments)
        return str(caught.value)

    def test_packages(self, absent):
        absent |= {"torch", "transformers", "onnx", "onnx_ir", "onnxscript", "safetensors"}
        assert self.refusal(stages._import_packages) == (
            "compiling needs torch, transformers, onnx, onnx_ir, onnxscript, safetensors: run the "
            "job in the compiler image; for the embedded AWS, `make export` installs them"
        )

    def test_tensorrt_and_cudas_bindings(self, absent, monkeypatch):
        monkeypatch.setitem(sys.modules, "cuda.bindings", None)
        message = self.refusal(checked_gpu, "sm86")
        assert message.startswith("building an engine needs CUDA's Python bindings (")
        assert message.endswith("): run the job in the compiler image")
        absent.add("tensorrt")
        assert checked_gpu("cpu") is None
        assert self.refusal(checked_gpu, "sm86") == (
            "target sm86 needs TensorRT, which is not installed here: run the job in the compiler "
            "image, or set target to cpu"
        )

    def test_the_gpu(self):
        with standin_machine(name="Tesla T4", capability=(7, 5)) as machine:
            assert checked_gpu("sm75") == Gpu("Tesla T4", "sm75")
            assert self.refusal(checked_gpu, "sm86") == (
                "target is sm86, and this machine's GPU is sm75 (Tesla T4): an engine runs only on "
                "the kind of GPU that it was built on; run the job on an instance with sm86"
            )
            machine.cuda.failures["cudaGetDeviceProperties"] = cudaError_t.cudaErrorNoDevice
            assert self.refusal(checked_gpu, "sm75") == (
                "building an engine needs a GPU, and CUDA finds none: no CUDA-capable device is "
                "detected (cudaErrorNoDevice); run the job on an instance with the target's GPU"
            )
