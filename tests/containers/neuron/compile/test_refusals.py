"""What a compile job refuses, before it loads anything large: exit code 1, one line, no model."""

from dataclasses import replace

import pytest

from containers.neuron.compile.command import run
from containers.neuron.compile.job import read_hyperparameters
from tests.containers.neuron.compile.jobs import ASKED


def refusal(job):
    return job.refusal(job.run_here(run))


def test_all_problems_are_reported_together(job):
    job.set_hyperparameters(
        target="inf3",
        batch_size="0",
        sequence_lengths="32,16",
        dtype=None,
        **{"pipeline_core": "1"},
    )
    (job.weights / "tokenizer.json").unlink()
    assert refusal(job) == (
        'hyperparameter target="inf3" is not one of cpu, inf1, inf2, trn1; '
        'hyperparameter batch_size="0" is not a whole number from 1 to 1024; '
        'hyperparameter sequence_lengths="32,16" is not numbers of tokens from 8 to 4096, '
        'ascending, such as "32,128"; '
        "hyperparameter dtype is missing: it is one of fp32, fp16, bf16; "
        "hyperparameter pipeline_core is unknown (did you mean pipeline_cores?); "
        f"{job.weights} lacks tokenizer.json: save it there with transformers' "
        "AutoTokenizer.from_pretrained(...).save_pretrained(...)"
    )


def test_no_channel(job):
    job.weights = job.weights.parent / "absent"
    assert refusal(job) == (
        f"{job.weights} is not a directory: give the job an input channel `weights`"
    )


def test_empty_channel(make_job):
    job = make_job()
    assert refusal(job) == (
        f"{job.weights} lacks config.json: it must be a Hugging Face checkpoint; "
        f"{job.weights} has no weights: no model.safetensors, whole or in shards with an "
        f"index; {job.weights} lacks tokenizer.json: save it there with transformers' "
        "AutoTokenizer.from_pretrained(...).save_pretrained(...)"
    )


def test_a_python_that_is_not_there(job):
    changes = {"SLIPWAY_WORKER_PYTHON": "/nowhere/python"}
    assert job.run(env_changes=changes) == 1
    assert job.failure == "cannot start /nowhere/python: No such file or directory"
    assert job.model_files == []


def test_packages(job):
    job.hide("torch", "transformers", "safetensors", "onnx", "onnx_ir", "onnxscript")
    assert job.run() == 1
    [failed] = job.named("compile_failed")
    assert "exception" not in failed
    assert job.failure == (
        "compiling for cpu needs torch, transformers, safetensors, onnx, onnx-ir, onnxscript: "
        "run the job in the compiler image; for the embedded AWS, `make export` installs them"
    )


def test_what_aws_leaves_out_of_its_image_for_inf1(job):
    job.set_hyperparameters(target="inf1", dtype="bf16")
    job.has_compilers("inf1")
    (job.modules / "tensorflow").unlink()
    job.hide("torch", "transformers", "safetensors", "tensorflow")
    assert job.run() == 1
    assert job.failure == (
        "compiling for inf1 needs torch, transformers, safetensors, tensorflow: run the job "
        "in the compiler image: it is the one for inf1"
    )


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        (
            {"target": "inf2", "pipeline_cores": "4", "dtype": "bf16"},
            "pipeline_cores is 4, and target inf2 has no NeuronCore Pipeline: set it to 1, "
            "only inf1 has it",
        ),
        (
            {"target": "inf1"},
            "dtype is fp32, and inf1 computes every matrix product in bf16 or fp16: set one "
            "of them",
        ),
        ({"dtype": "bf16"}, "dtype is bf16, and target cpu computes in fp32: set that"),
        (
            {"runtime": "torch_neuron"},
            'hyperparameter runtime="torch_neuron" is not one of onnxruntime, torchscript',
        ),
        (
            {"task": "fill-mask"},
            'hyperparameter task="fill-mask" is not one of question-answering, '
            "sequence-classification, token-classification, embeddings",
        ),
        *(
            (
                {"sequence_lengths": lengths},
                f'hyperparameter sequence_lengths="{lengths}" is not numbers of tokens from 8 '
                'to 4096, ascending, such as "32,128"',
            )
            for lengths in ("7", "8,8", "4097", "16, 32", "16,", "128,64")
        ),
    ],
)
def test_what_is_refused(job, changes, problem):
    job.set_hyperparameters(**changes)
    assert read_hyperparameters(job.input_config) == (None, [problem])


@pytest.mark.parametrize(
    ("changes", "read"),
    [
        ({}, {}),
        ({"runtime": "torchscript"}, {"runtime": "torchscript"}),
        (
            {"target": "inf1", "dtype": "fp16", "pipeline_cores": "16"},
            {
                "target": "inf1", "dtype": "fp16", "pipeline_cores": 16,
                "runtime": "torch_neuron",
            },
        ),
        (
            {"target": "trn1", "sequence_lengths": "8,4096"},
            {"target": "trn1", "runtime": "torch_neuronx", "sequence_lengths": (8, 4096)},
        ),
    ],
)  # fmt: skip
def test_what_is_read(job, changes, read):
    job.set_hyperparameters(**changes)
    found, problems = read_hyperparameters(job.input_config)
    assert problems == []
    assert found == replace(ASKED, **read)
