"""Real checkpoints become model directories that the container's own workers serve.

For Neuron the compilers are stand-ins over the real PyTorch (`standins/README.md`), and so is the
device that the workers find; what they compute is PyTorch's.
"""

import copy
import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from containers.neuron.batches import batch_arrays
from containers.neuron.compile.order import CompileOrder
from containers.neuron.manifest import (
    INPUT_NAMES,
    MANIFEST_FILE,
    TASK_OUTPUTS,
    Manifest,
    read_manifest,
)
from containers.neuron.predictor import EncoderPredictor
from containers.neuron.settings import EncoderSettings
from containers.neuron.tokenization import Row
from containers.serving.predictor import ModelLoadError
from tests.containers.neuron.compile.jobs import (
    SIZES,
    STANDINS,
    VERSIONS,
    WORDS,
    NeuronJob,
    write_versions,
)
from tests.containers.neuron.machine import runtime
from tests.containers.neuron.vocabularies import bert_tokenizer
from tests.support.compile_jobs import ROOT
from tests.support.groups import load

torch = load("torch", group="torch")
transformers = load("transformers", group="torch")
safetensors_torch = load("safetensors.torch", group="torch")

from containers.jobs.report import CompileError  # noqa: E402  (after the skips)
from containers.neuron.compile import compilers, parity, worker  # noqa: E402
from containers.neuron.compile.modules import EncoderModule, input_names  # noqa: E402
from containers.neuron.compile.worker import compile_order  # noqa: E402
from containers.neuron.runtimes.torch_script import TorchScriptSession  # noqa: E402

pytestmark = [
    pytest.mark.torch,
    pytest.mark.timeout(600),
    # transformers and torch deprecate each other's and their own names in every release.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]

QUESTION = {"inputs": {"question": "Who wrote it?", "context": "Ada Lovelace wrote the program."}}
ROWS = [
    Row((2, 7, 9, 3), (0, 0, 0, 0), 1),
    Row((2, 7, 4, 8, 11, 12, 3), (0, 0, 0, 1, 1, 1, 1), 3),
]
HEADS = {
    "question-answering": "ForQuestionAnswering",
    "sequence-classification": "ForSequenceClassification",
    "token-classification": "ForTokenClassification",
    "embeddings": "Model",
}


def save_checkpoint(directory: Path, family: str = "Bert", task: str = "question-answering") -> Any:
    """Writes a random checkpoint; returns its model."""
    torch.manual_seed(3)
    sizes = dict(SIZES)
    if family == "DistilBert":
        sizes = {
            "vocab_size": 40, "dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 32,
            "max_position_embeddings": 40, "pad_token_id": 0,
        }  # fmt: skip
    config = getattr(transformers, f"{family}Config")(
        # Large enough that an answer is better than the others by more than rounding.
        **sizes, initializer_range=0.5,
        num_labels=2 if task == "question-answering" else 3,
    )  # fmt: skip
    model = getattr(transformers, f"{family}{HEADS[task]}")(config).eval()
    model.save_pretrained(directory)
    (directory / "tokenizer.json").write_text(bert_tokenizer(WORDS).to_str())
    return model


def order_for(checkpoint: Path, output: Path, **changes: Any) -> CompileOrder:
    fields: dict[str, Any] = {
        "checkpoint": checkpoint,
        "output": output,
        "model_class": "BertForQuestionAnswering",
        "task": "question-answering",
        "target": "cpu",
        "runtime": "torchscript",
        "batch_size": 2,
        "sequence_lengths": (8, 16),
        "pipeline_cores": 1,
        "dtype": "fp32",
        "pooling": None,
        "normalize": False,
    }
    return CompileOrder(**fields | changes)


def computed_alone(model: Any, task: str, row: Row) -> list[Any]:
    """What the model makes of one row, without any padding."""
    inputs = input_names(model)
    arrays = batch_arrays([row], bucket=len(row), batch_size=None, pad_token_id=0)
    tensors = [torch.from_numpy(arrays[name]) for name in inputs]
    with torch.no_grad():
        return [each.numpy()[0] for each in EncoderModule(model, task, inputs)(*tensors)]


@contextmanager
def served(
    model_dir: Path,
    environment: Mapping[str, str],
    monkeypatch: pytest.MonkeyPatch,
    *,
    workers: int = 1,
) -> Iterator[EncoderPredictor]:
    """The container's predictor, with workers of its own in this environment."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    predictor = EncoderPredictor(EncoderSettings(workers=workers), max_batch_size=2)
    try:
        predictor.load(model_dir)
        yield predictor
    finally:
        predictor.close()


def device(directory: Path, modules: Path, cores: int) -> dict[str, str]:
    """The environment of a process on an instance with this many NeuronCores."""
    directory.mkdir()
    return {
        "PYTHONPATH": f"{modules}:{ROOT}",
        "NEURON_STANDIN_DIRECTORY": str(directory),
        "NEURON_STANDIN_CORES": str(cores),
    }


def answer(predictor: EncoderPredictor, body: Any = QUESTION) -> Any:
    values = predictor.parse(json.dumps(body).encode())
    outputs = [output for value in values for output in predictor.predict([value])]
    return json.loads(predictor.render(outputs))


def expected_answer(predictor: EncoderPredictor, model: Any) -> Any:
    """The same of the model itself, decoded by the predictor's own task."""
    (value,) = predictor.parse(json.dumps(QUESTION).encode())
    start, end = computed_alone(model, "question-answering", value.row)
    task = predictor._task
    decoded = task.decode(value, {"start_logits": start, "end_logits": end})
    return json.loads(task.render([decoded]))


def assert_same_answer(found: Any, expected: Any) -> None:
    assert found.pop("score") == pytest.approx(expected.pop("score"), rel=1e-4)
    assert found == expected


class TestForNeuronDevices:
    @pytest.fixture
    def compiled(self, make_job: Callable[[], NeuronJob]) -> Callable[..., tuple[NeuronJob, Any]]:
        def compile_for(target: str, **changes: str) -> tuple[NeuronJob, Any]:
            job = make_job()
            model = save_checkpoint(job.weights)
            job.set_hyperparameters(target=target, **changes)
            job.has_compilers(target)
            assert job.run() == 0, job.events
            return job, model

        return compile_for

    def test_a_pipeline_on_inf1(
        self,
        compiled: Callable[..., tuple[NeuronJob, Any]],
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
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

    def check_log(self, job: NeuronJob) -> None:
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

    def test_copies_on_inf2(
        self,
        compiled: Callable[..., tuple[NeuronJob, Any]],
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
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

        # What the container checks before it starts a worker.
        for path in job.modules.glob("*.dist-info"):
            shutil.rmtree(path)
        write_versions(job.modules, VERSIONS["inf2"] | {"neuronx-cc": "2.27.1"})
        environment = device(tmp_path / "other", job.modules, cores=2)
        with (
            pytest.raises(ModelLoadError) as caught,
            served(job.model, environment, monkeypatch),
        ):
            pass
        assert str(caught.value) == (
            "the model compiled for inf2 cannot serve here: it was made with neuronx-cc "
            "2.24.8799.0, and this container has 2.27.1; publish the model again, which compiles "
            "it anew"
        )
        assert list((tmp_path / "other").iterdir()) == []


class TestCompilers:
    """In this process, with the stand-ins beside it."""

    @pytest.fixture(autouse=True)
    def _compilers(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        site = tmp_path / "site"
        for versions in VERSIONS.values():
            write_versions(site, versions)
        monkeypatch.syspath_prepend(str(site))
        monkeypatch.syspath_prepend(str(STANDINS))
        monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "inf2")
        monkeypatch.delenv("NEURON_STANDIN_CORES", raising=False)

    @pytest.mark.parametrize(
        ("target", "dtype", "cores", "arguments"),
        [
            ("inf1", "bf16", 1, "--fp32-cast matmult-bf16"),
            ("inf1", "fp16", 1, "--fp32-cast matmult-fp16"),
            ("inf1", "fp16", 16, "--fp32-cast matmult-fp16 --neuroncore-pipeline-cores 16"),
            ("inf2", "fp32", 1, "--target inf2 --model-type transformer --auto-cast none"),
            (
                "trn1",
                "bf16",
                1,
                "--target trn1 --model-type transformer --auto-cast matmult --auto-cast-type bf16",
            ),
            ("cpu", "fp32", 1, ""),
        ],
    )
    def test_what_they_are_told(
        self, tmp_path: Path, target: str, dtype: str, cores: int, arguments: str
    ) -> None:
        order = order_for(
            tmp_path, tmp_path, target=target, dtype=dtype, pipeline_cores=cores,
            runtime={"inf1": "torch_neuron", "cpu": "onnxruntime"}.get(target, "torch_neuronx"),
        )  # fmt: skip
        assert compilers.compiler_arguments(order) == tuple(arguments.split())

    def compile_for_inf1(self, tmp_path: Path, **changes: Any) -> None:
        checkpoint, scratch = tmp_path / "checkpoint", tmp_path / "scratch"
        save_checkpoint(checkpoint)
        scratch.mkdir()
        order = order_for(
            checkpoint, tmp_path, target="inf1", runtime="torch_neuron", dtype="bf16", **changes
        )
        compile_order(order, scratch)

    def test_a_graph_of_the_processor_is_refused(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """With a warning torch_neuron gives one back where it compiled nothing."""
        monkeypatch.setenv("NEURON_STANDIN_COMPILES", "nothing")
        with pytest.raises(CompileError) as caught:
            self.compile_for_inf1(tmp_path)
        assert str(caught.value) == (
            "torch_neuron compiled nothing of BertForQuestionAnswering for inf1: it would all run "
            "on the processor; the job's log has what it wrote"
        )

    def test_a_compiler_that_fails_is_named(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(
            compilers, "compiler_arguments", lambda _: ("--fp32-cast", "everything")
        )
        with pytest.raises(CompileError) as caught:
            self.compile_for_inf1(tmp_path)
        assert str(caught.value) == (
            "torch_neuron cannot compile BertForQuestionAnswering for 2 x 8 tokens: RuntimeError: "
            "the compiler does not know --fp32-cast everything; the job's log has what its "
            "compiler wrote"
        )

    def test_a_lack_of_memory_is_no_fault_of_the_model(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def out_of_memory(order: CompileOrder) -> tuple[str, ...]:
            raise MemoryError

        monkeypatch.setattr(compilers, "compiler_arguments", out_of_memory)
        with pytest.raises(MemoryError):
            self.compile_for_inf1(tmp_path)


CASES = [
    *(("Bert", task) for task in HEADS),
    ("DistilBert", "question-answering"),
    ("DistilBert", "embeddings"),
    ("Roberta", "sequence-classification"),
    ("XLMRoberta", "token-classification"),
]


@pytest.mark.parametrize(("family", "task"), CASES)
def test_every_family_and_task_for_the_cpu(tmp_path: Path, family: str, task: str) -> None:
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
        outputs = session.run(arrays)
        for number, row in enumerate(ROWS):
            for found, wanted in zip(
                outputs.values(), computed_alone(model, task, row), strict=True
            ):
                ours = found[number]
                if task != "sequence-classification":
                    ours = ours[: len(row)]
                np.testing.assert_allclose(ours, wanted, atol=1e-5)


@pytest.mark.parametrize("runtime_name", ["onnxruntime", "torchscript"])
def test_the_cpus_graphs_are_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runtime_name: str
) -> None:
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
    body = {"inputs": {"question": "Who?", "context": "Ada Lovelace wrote it."}}
    with served(scratch, {"PYTHONPATH": str(ROOT)}, monkeypatch) as predictor:
        (value,) = predictor.parse(json.dumps(body).encode())
        start, end = computed_alone(model, "question-answering", value.row)
        decoded = predictor._task.decode(value, {"start_logits": start, "end_logits": end})
        expected = json.loads(predictor._task.render([decoded]))
        assert_same_answer(answer(predictor, body), expected)


class TestRefusals:
    def test_a_model_that_no_onnx_graph_holds(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        checkpoint = tmp_path / "checkpoint"
        model = save_checkpoint(checkpoint)
        weight_bytes = 4 * model.num_parameters()
        monkeypatch.setattr(worker, "_LARGEST_ONNX_BYTES", weight_bytes)
        for name in ("onnx", "onnxscript"):
            load(name, group="torch")
        assert self.compile(checkpoint, tmp_path, runtime="onnxruntime") == (
            f"the model has {weight_bytes} bytes of weights, and an ONNX graph less than "
            f"{weight_bytes}: compile it with the hyperparameter runtime=torchscript"
        )

    def compile(self, checkpoint: Path, tmp_path: Path, **changes: Any) -> str:
        scratch = tmp_path / "scratch"
        scratch.mkdir()
        with pytest.raises(CompileError) as caught:
            compile_order(order_for(checkpoint, tmp_path, **changes), scratch)
        assert not (scratch / MANIFEST_FILE).exists()
        return str(caught.value)

    def test_a_head_that_was_never_trained(self, tmp_path: Path) -> None:
        """The form of a checkpoint whose config does not say what it is."""
        checkpoint = tmp_path / "checkpoint"
        save_checkpoint(checkpoint, task="embeddings")
        assert self.compile(checkpoint, tmp_path) == (
            f"the checkpoint in {checkpoint} lacks 2 weights: qa_outputs.bias, qa_outputs.weight"
        )

    @pytest.mark.parametrize("value", [float("nan"), float("inf")])
    def test_weights_that_are_not_finite(self, tmp_path: Path, value: float) -> None:
        checkpoint = tmp_path / "checkpoint"
        model = save_checkpoint(checkpoint)
        weights = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        weights["qa_outputs.bias"][0] = value
        safetensors_torch.save_file(
            weights, checkpoint / "model.safetensors", metadata={"format": "pt"}
        )
        assert self.compile(checkpoint, tmp_path) == "1 weights are not finite: qa_outputs.bias"

    def test_weights_of_other_sizes(self, tmp_path: Path) -> None:
        checkpoint = tmp_path / "checkpoint"
        save_checkpoint(checkpoint)
        path = checkpoint / "config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"intermediate_size": 48}))
        assert self.compile(checkpoint, tmp_path).startswith(
            f"cannot load the checkpoint in {checkpoint}: "
        )

    def test_a_graph_that_computes_something_else(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        checkpoint = tmp_path / "checkpoint"
        save_checkpoint(checkpoint)
        trace = compilers.cpu_trace

        def of_other_weights(module: Any, example: Any) -> Any:
            other = copy.deepcopy(module)
            with torch.no_grad():
                other.model.qa_outputs.bias.add_(1)
            return trace(other, example)

        monkeypatch.setattr(compilers, "cpu_trace", of_other_weights)
        reason = self.compile(checkpoint, tmp_path)
        assert reason.startswith(
            "the graph for 8 tokens does not compute what the model does: it differs by 1 where "
            "the largest number is "
        )

    def test_a_graph_that_ignores_the_mask(self, tmp_path: Path) -> None:
        model = save_checkpoint(tmp_path / "checkpoint")
        inputs = input_names(model)
        module = EncoderModule(model, "question-answering", inputs).eval()

        def unmasked(arrays: dict[str, Any]) -> tuple[Any, ...]:
            changed = arrays | {"attention_mask": np.ones_like(arrays["attention_mask"])}
            with torch.no_grad():
                computed = module(*(torch.from_numpy(changed[name]) for name in inputs))
            return tuple(each.numpy() for each in computed)

        order = order_for(tmp_path, tmp_path)
        with pytest.raises(CompileError, match="does not compute what the model does"):
            parity.check_graph(unmasked, module, inputs, order, 16)

    @pytest.mark.parametrize("wrong", ["shape", "nan"])
    def test_outputs_that_are_none(self, tmp_path: Path, wrong: str) -> None:
        model = save_checkpoint(tmp_path / "checkpoint")
        inputs = input_names(model)
        module = EncoderModule(model, "question-answering", inputs).eval()
        shape = (2, 16, 2) if wrong == "shape" else (2, 16)
        fill = 0.0 if wrong == "shape" else float("nan")
        output = np.full(shape, fill, np.float32)
        order = order_for(tmp_path, tmp_path)
        with pytest.raises(CompileError) as caught:
            parity.check_graph(lambda _: (output, output), module, inputs, order, 16)
        shown = "[16, 2]" if wrong == "shape" else "[16]"
        assert str(caught.value) == (
            "the graph for 16 tokens does not compute what the model does: its output has the "
            f"shape {shown} for [16], or holds numbers that are not finite"
        )
