"""Real checkpoints become model directories that the container's own workers serve.

For Neuron the compilers are stand-ins over the real PyTorch (`standins/README.md`), and so is the
device that the workers find; what they compute is PyTorch's.
"""

import json
from contextlib import contextmanager

import pytest

from containers.encoders.batches import batch_arrays
from containers.encoders.manifest import INPUT_NAMES, TASK_OUTPUTS, Manifest, read_manifest
from tests.containers.neuron.compile.jobs import VERSIONS
from tests.containers.neuron.machine import opened, runtime
from tests.support.compile_jobs import ROOT
from tests.support.groups import load

torch = load("torch", group="torch")

from containers.neuron.compile.worker import compile_order  # noqa: E402  (after the skips)
from containers.neuron.runtimes.torch_script import TorchScriptSession  # noqa: E402
from tests.containers.neuron.compile.random_checkpoints import (  # noqa: E402
    HEADS,
    MARKS,
    ROWS,
    assert_computed,
    computed_alone,
    order_for,
    save_checkpoint,
)

pytestmark = MARKS
QUESTION = {"inputs": {"question": "Who wrote it?", "context": "Ada Lovelace wrote the program."}}


@contextmanager
def served(model_dir, environment, monkeypatch, *, workers=1):
    """The container's predictor, with workers of its own in this environment."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with opened(model_dir, workers=workers, max_batch_size=2) as predictor:
        yield predictor


def device(directory, modules, cores):
    directory.mkdir()
    return {
        "PYTHONPATH": f"{modules}:{ROOT}",
        "NEURON_STANDIN_DIRECTORY": str(directory),
        "NEURON_STANDIN_CORES": str(cores),
    }


def answer(predictor):
    values = predictor.parse(json.dumps(QUESTION).encode())
    outputs = [output for value in values for output in predictor.predict([value])]
    return json.loads(predictor.render(outputs))


def expected_answer(predictor, model):
    """The same of the model itself, decoded by the predictor's own task."""
    (value,) = predictor.parse(json.dumps(QUESTION).encode())
    start, end = computed_alone(model, "question-answering", value.row)
    task = predictor._task
    decoded = task.decode(value, {"start_logits": start, "end_logits": end})
    return json.loads(task.render([decoded]))


def assert_same_answer(found, expected):
    assert found.pop("score") == pytest.approx(expected.pop("score"), rel=1e-4)
    assert found == expected


class TestForNeuronDevices:
    @pytest.fixture
    def compiled(self, make_job):
        def compile_for(target, **changes):
            job = make_job()
            model = save_checkpoint(job.weights)
            job.set_hyperparameters(target=target, **changes)
            job.has_compilers(target)
            assert job.run() == 0, job.events
            return job, model

        return compile_for

    def test_a_pipeline_on_inf1(self, compiled, tmp_path, monkeypatch):
        job, model = compiled("inf1", dtype="bf16", pipeline_cores="4")
        arguments = ["--fp32-cast", "matmult-bf16", "--neuroncore-pipeline-cores", "4"]
        assert job.compiled() == [
            ["torch_neuron", [[2, length]] * 3, arguments] for length in (16, 32)
        ]
        assert job.model_files == [
            "config.json", "model-16.pt", "model-32.pt", "neuron.json", "tokenizer.json",
        ]  # fmt: skip
        for name in ("config.json", "tokenizer.json"):
            assert (job.model / name).read_bytes() == (job.weights / name).read_bytes()
        manifest = read_manifest(job.model)
        assert manifest == Manifest(
            task="question-answering",
            target="inf1",
            runtime="torch_neuron",
            batch_size=2,
            pipeline_cores=4,
            dtype="bf16",
            graphs={16: "model-16.pt", 32: "model-32.pt"},
            inputs=INPUT_NAMES,
            outputs=TASK_OUTPUTS["question-answering"],
            pooling=None,
            normalize=False,
            versions=manifest.versions,
            compiler_arguments=tuple(arguments),
        )
        assert manifest.versions.items() >= VERSIONS["inf1"].items()
        assert set(manifest.versions) == {"torch", "transformers", "safetensors", *VERSIONS["inf1"]}
        self.check_log(job)

        environment = device(tmp_path / "devices", job.modules, cores=8)
        with served(job.model, environment, monkeypatch, workers=2) as predictor:
            for _ in range(4):
                assert_same_answer(answer(predictor), expected_answer(predictor, model))
            machine = runtime.Machine(tmp_path / "devices", 8)
            owners = [machine.history(core) for core in range(8)]
            assert owners == [
                [process] for process in predictor.worker_process_ids() for _ in range(4)
            ]

    def check_log(self, job):
        finished = job.named("stage_finished")
        assert [(line["stage"], line.get("sequence_length")) for line in finished] == [
            ("import_packages", None),
            ("load_checkpoint", None),
            ("write_configs", None),
            ("verify_trace", 16),
            ("verify_trace", 32),
            ("compile_graph", 16),
            ("compile_graph", 32),
        ]
        assert all(line["duration_seconds"] >= 0 for line in finished)
        # Two rows of 16 and 8 tokens, each with two logits for every token.
        assert finished[3]["values_compared"] == 2 * (16 + 8)
        assert finished[3]["largest_difference"] < 1e-5
        assert finished[5]["bucket"] == "1 of 2"
        size_bytes = (job.model / "model-16.pt").stat().st_size
        assert finished[5]["bytes"] == {"model-16.pt": size_bytes}
        [not_run] = job.named("graphs_not_run")
        assert not_run["message"] == (
            "graphs for inf1 run on its devices alone: what was checked here is that the traced "
            "module computes what the model does, before it was compiled"
        )
        [end] = job.named("compile_finished")
        assert end["files"]["model-16.pt"] == size_bytes
        assert [line for line in job.events if line["level"] != "INFO"] == []

    def test_copies_on_inf2(self, compiled, tmp_path, monkeypatch):
        job, model = compiled("inf2", dtype="fp16", sequence_lengths="32")
        arguments = [
            "--target", "inf2", "--model-type", "transformer",
            "--auto-cast", "matmult", "--auto-cast-type", "fp16",
        ]  # fmt: skip
        assert job.compiled() == [["torch_neuronx", [[2, 32]] * 3, arguments]]
        environment = device(tmp_path / "devices", job.modules, cores=2)
        with served(job.model, environment, monkeypatch, workers=2) as predictor:
            for _ in range(4):
                assert_same_answer(answer(predictor), expected_answer(predictor, model))


CASES = [
    *(("Bert", task) for task in HEADS),
    ("DistilBert", "question-answering"),
    ("DistilBert", "embeddings"),
    ("Roberta", "sequence-classification"),
    ("XLMRoberta", "token-classification"),
]


@pytest.mark.parametrize(("family", "task"), CASES)
def test_every_family_and_task_for_the_cpu(tmp_path, family, task):
    checkpoint, scratch = tmp_path / "checkpoint", tmp_path / "scratch"
    model = save_checkpoint(checkpoint, family, task)
    scratch.mkdir()
    compile_order(
        order_for(
            checkpoint,
            tmp_path,
            model_class=f"{family}{HEADS[task]}",
            task=task,
            pooling="cls" if task == "embeddings" else None,
            normalize=task == "embeddings",
        ),
        scratch,
    )
    manifest = read_manifest(scratch)
    assert (manifest.pooling, manifest.normalize) == (
        ("cls", True) if task == "embeddings" else (None, False)
    )
    assert len(manifest.inputs) == (3 if family == "Bert" else 2)
    session = TorchScriptSession(scratch, manifest, threads=1)
    for bucket in (8, 16):
        arrays = batch_arrays(ROWS, bucket=bucket, batch_size=2, pad_token_id=0)
        assert_computed(session.run(arrays), model, task, ROWS)


@pytest.mark.parametrize("runtime_name", ["onnxruntime", "torchscript"])
def test_the_cpus_graphs_are_served(tmp_path, monkeypatch, runtime_name):
    if runtime_name == "onnxruntime":
        load("onnxscript", group="torch")
    checkpoint, scratch = tmp_path / "checkpoint", tmp_path / "scratch"
    model = save_checkpoint(checkpoint)
    scratch.mkdir()
    compile_order(order_for(checkpoint, tmp_path, runtime=runtime_name), scratch)
    manifest = read_manifest(scratch)
    assert manifest.runtime == runtime_name
    # One graph takes every length; those of TorchScript have one each.
    assert len(set(manifest.graphs.values())) == (1 if runtime_name == "onnxruntime" else 2)
    with served(scratch, {"PYTHONPATH": str(ROOT)}, monkeypatch) as predictor:
        assert_same_answer(answer(predictor), expected_answer(predictor, model))
