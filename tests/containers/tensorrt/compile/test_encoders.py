"""A random BERT compiled for the CPU, as a job, and for GPUs by NVIDIA's own builder."""

import json

import pytest

from containers.encoders.manifest import ENCODER_FILE, read_manifest
from containers.neuron.predictor import NeuronPredictor
from containers.neuron.settings import NeuronSettings
from containers.tensorrt.compile.command import run
from containers.tensorrt.engine_metadata import Gpu
from tests.containers.neuron.compile.jobs import write_checkpoint_files
from tests.containers.tensorrt.sample_model import encoder_answer as answer
from tests.containers.tensorrt.sample_model import encoder_predictor as predictor
from tests.support.compile_jobs import Job
from tests.support.groups import TORCH_MARKS, load

HYPERPARAMETERS = {
    "target": "cpu",
    "task": "question-answering",
    "batch_size": "2",
    "sequence_lengths": "16,32",
    "dtype": "fp32",
}
QUESTION = {"inputs": {"question": "Who wrote it?", "context": "Ada Lovelace wrote the program."}}

TEXTS = ["Who wrote it?", "Ada Lovelace wrote the first program.", "It."]
BODIES = {
    "question-answering": {
        "inputs": [{"question": TEXTS[0], "context": text} for text in TEXTS[1:]],
        "parameters": {"top_k": 2},
    },
    "sequence-classification": {"inputs": TEXTS, "parameters": {"top_k": 3}},
    "token-classification": {"inputs": TEXTS},
    "embeddings": {"inputs": TEXTS},
}
# Of scores from 0 to 1, and of embeddings with numbers of about 1. Float32 rounds at 6e-8, and two
# layers of 16 numbers add up less than a hundred roundings.
TOLERANCE = 1e-5


def assert_close(found, wanted):
    """Compares answers: numbers within the tolerance, and all else exactly."""
    if isinstance(wanted, float):
        assert found == pytest.approx(wanted, abs=TOLERANCE)
    elif isinstance(wanted, list | dict):
        keys = range(len(wanted)) if isinstance(wanted, list) else wanted
        assert len(found) == len(wanted)
        for key in keys:
            assert_close(found[key], wanted[key])
    else:
        assert found == wanted


@pytest.fixture
def job(tmp_path):
    return Job(tmp_path, "tensorrt", HYPERPARAMETERS)


def test_bad_input_is_reported_at_once(job):
    write_checkpoint_files(job.weights, architectures=["BertForMaskedLM"])
    job.set_hyperparameters(batch_size="0", dtype="bf16")
    assert job.refusal(job.run_here(run)) == (
        'hyperparameter batch_size="0" is not a whole number from 1 to 1024; '
        'hyperparameter dtype="bf16" is not one of fp16, fp32, int8'
    )
    job.events.clear()
    job.set_hyperparameters(target="sm86", dtype="int8")
    assert 'hyperparameter dtype="int8" is not one of' in job.refusal(job.run_here(run))
    job.events.clear()
    job.set_hyperparameters()
    message = job.refusal(job.run_here(run))
    assert "needs BertForQuestionAnswering: another head was never trained for it" in message


def compiled(directory, family, task, target, dtype, gpu=None):
    """Compiles a random model; returns it, and the model directory."""
    from containers.encoders.compile.checkpoint import read_checkpoint
    from containers.tensorrt.compile.command import Hyperparameters
    from containers.tensorrt.compile.encoder_worker import compile_checkpoint
    from containers.tensorrt.compile.job import Job as CompileJob
    from tests.containers.neuron.compile.random_checkpoints import save_checkpoint

    weights, published = directory / "weights", directory / "published"
    model = save_checkpoint(weights, family, task)
    published.mkdir()
    asked = Hyperparameters(target, task, 2, (16, 32), dtype)
    checkpoint, problems = read_checkpoint(weights, asked)
    assert checkpoint is not None, problems
    compile_checkpoint(CompileJob(asked, checkpoint), gpu, published)
    return model, published


class TestWithTorch:
    pytestmark = [*TORCH_MARKS, pytest.mark.timeout(600)]  # noqa: RUF012

    def test_a_checkpoint_becomes_what_the_container_serves(self, job):
        from tests.containers.neuron.compile.random_checkpoints import save_checkpoint

        save_checkpoint(job.weights)
        assert job.run() == 0, job.events
        assert job.model_files == ["config.json", ENCODER_FILE, "model.onnx", "tokenizer.json"]
        assert read_manifest(job.model).buckets == (16, 32)
        served = predictor(2)
        served.load(job.model)
        assert answer(served, QUESTION, most=2)["answer"]

    @pytest.mark.parametrize(("task", "body"), BODIES.items())
    def test_both_containers_and_transformers_give_the_same_answers(self, tmp_path, task, body):
        """One published directory, in the Neuron container and in this one, and its model."""
        import torch

        from containers.encoders.compile.modules import EncoderModule

        model, published = compiled(tmp_path, "Bert", task, "cpu", "fp32")
        manifest = read_manifest(published)

        class Transformers:
            def run(self, inputs):
                module = EncoderModule(model, task, manifest.inputs)
                with torch.no_grad():
                    found = module(*(torch.from_numpy(inputs[name]) for name in manifest.inputs))
                return dict(zip(manifest.outputs, (each.numpy() for each in found), strict=True))

        ours, reference = predictor(2), predictor(2)
        neuron = NeuronPredictor(NeuronSettings(workers=1), max_batch_size=2)
        try:
            for served in (ours, reference, neuron):
                served.load(published)
            reference._session = Transformers()
            found = answer(ours, body, most=2)
            # Neuron's back end for the CPU runs the same graph in the same batches.
            assert answer(neuron, body, most=2) == found
            # Each text alone, without another's padding.
            assert_close(found, answer(reference, body, most=1))
        finally:
            neuron.close()

    @pytest.mark.parametrize(
        ("family", "task"), [("Bert", "question-answering"), ("Roberta", "embeddings")]
    )
    def test_int8_weights_are_measured_and_served(self, tmp_path, family, task):
        _, published = compiled(tmp_path, family, task, "cpu", "int8")
        assert read_manifest(published).dtype == "int8"
        assert b"MatMulIntegerToFloat" in (published / "model.onnx").read_bytes()
        accuracy = json.loads((published / "accuracy.json").read_text())
        assert accuracy["texts"] == 7
        assert 0.005 < accuracy["relative_difference"] < 0.15
        served = predictor(2, dtype="int8")
        served.load(published)
        # Rows of other lengths in a batch change no answer.
        alone, together = (answer(served, BODIES[task], most=most) for most in (1, 2))
        assert_close(together, alone)


@pytest.mark.builder
@pytest.mark.torch
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize(
    ("family", "task"), [("Bert", "question-answering"), ("Roberta", "embeddings")]
)
def test_compiling_for_a_gpu_builds_an_engine_of_the_fp16_graph(
    engine_builder, tmp_path, monkeypatch, family, task
):
    """Every stage of a job but the check of the GPU; see `rtx_builder` for what is NVIDIA's."""
    rtx = load("tensorrt_rtx_bindings", group="builder")
    load("torch", group="torch")
    from containers.tensorrt.compile import encoder_worker
    from tests.containers.tensorrt.rtx_builder import building_for, output_types

    build, products = encoder_worker.build_plans, set()

    def build_plans(directory, engines):
        network = engine_builder.ParsedGraph(directory / "model.onnx").network
        products.update(output_types(network, rtx.LayerType.MATRIX_MULTIPLY))
        return build(directory, engines)

    monkeypatch.setattr(encoder_worker, "build_plans", build_plans)
    gpu = Gpu("NVIDIA A10G", "sm86")
    with building_for("SM86"):
        _, scratch = compiled(tmp_path, family, task, "sm86", "fp16", gpu)

    assert products == {rtx.DataType.HALF}
    assert {path.name for path in scratch.iterdir()} == {
        "config.json", "tokenizer.json", ENCODER_FILE, "model.engine", "timing.cache",
    }  # fmt: skip
    manifest = read_manifest(scratch)
    assert (manifest.target, manifest.runtime, manifest.dtype) == ("sm86", "tensorrt", "fp16")
    assert manifest.graphs == {16: "model.engine", 32: "model.engine"}
    assert manifest.versions["tensorrt"] == rtx.__version__
