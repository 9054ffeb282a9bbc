"""What a compile job refuses, before it loads anything large: exit code 1, one line, no model."""

import ast
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from containers.neuron.compile.checkpoint import read_checkpoint
from containers.neuron.compile.job import Hyperparameters, read_hyperparameters
from tests.containers.neuron.compile.jobs import NeuronJob, write_checkpoint_files
from tests.support.compile_jobs import ROOT

ASKED = Hyperparameters(
    target="cpu",
    task="question-answering",
    batch_size=2,
    sequence_lengths=(16, 32),
    pipeline_cores=1,
    dtype="fp32",
    runtime="onnxruntime",
)
LABELS = {"id2label": {"0": "NO", "1": "YES"}}


def refusal(job: NeuronJob) -> str:
    return job.refusal(job.run())


class TestAsAJob:
    def test_all_problems_are_reported_together(self, job: NeuronJob) -> None:
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

    def test_no_channel(self, job: NeuronJob) -> None:
        job.weights = job.weights.parent / "absent"
        assert refusal(job) == (
            f"{job.weights} is not a directory: give the job an input channel `weights`"
        )

    def test_empty_channel(self, make_job: Callable[[], NeuronJob]) -> None:
        job = make_job()
        assert refusal(job) == (
            f"{job.weights} lacks config.json: it must be a Hugging Face checkpoint; "
            f"{job.weights} has no weights: no model.safetensors, whole or in shards with an "
            f"index; {job.weights} lacks tokenizer.json: save it there with transformers' "
            "AutoTokenizer.from_pretrained(...).save_pretrained(...)"
        )

    def test_a_python_that_is_not_there(self, job: NeuronJob) -> None:
        changes = {"SLIPWAY_WORKER_PYTHON": "/nowhere/python"}
        assert job.run(env_changes=changes) == 1
        assert job.failure == "cannot start /nowhere/python: No such file or directory"
        assert job.model_files == []

    def test_packages(self, job: NeuronJob) -> None:
        job.hide("torch", "transformers", "safetensors", "onnx", "onnx_ir", "onnxscript")
        assert job.run() == 1
        [failed] = job.named("compile_failed")
        assert "exception" not in failed
        assert job.failure == (
            "compiling for cpu needs torch, transformers, safetensors, onnx, onnx-ir, onnxscript: "
            "run the job in the compiler image; for the embedded AWS, `make export` installs them"
        )

    def test_what_aws_leaves_out_of_its_image_for_inf1(self, job: NeuronJob) -> None:
        job.set_hyperparameters(target="inf1", dtype="bf16")
        job.has_compilers("inf1")
        (job.modules / "tensorflow").unlink()
        job.hide("torch", "transformers", "safetensors", "tensorflow")
        assert job.run() == 1
        assert job.failure == (
            "compiling for inf1 needs torch, transformers, safetensors, tensorflow: run the job "
            "in the compiler image: it is the one for inf1"
        )

    def test_the_image_of_another_family(self, job: NeuronJob) -> None:
        job.set_hyperparameters(target="inf2", dtype="bf16")
        job.hide("torch", "transformers", "safetensors", "torch_neuronx")
        assert job.run() == 1
        assert job.failure == (
            "compiling for inf2 needs torch, transformers, safetensors, torch-neuronx, "
            "neuronx-cc: run the job in the compiler image: it is the one for inf2"
        )


class TestHyperparameters:
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
    def test_what_is_refused(
        self, job: NeuronJob, changes: dict[str, str | None], problem: str
    ) -> None:
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
    def test_what_is_read(
        self, job: NeuronJob, changes: dict[str, str | None], read: dict[str, Any]
    ) -> None:
        job.set_hyperparameters(**changes)
        found, problems = read_hyperparameters(job.input_config)
        assert problems == []
        assert found == Hyperparameters(**{**vars(ASKED), **read})


def problems_with(directory: Path, **asked: Any) -> list[str]:
    checkpoint, problems = read_checkpoint(directory, Hyperparameters(**{**vars(ASKED), **asked}))
    assert (checkpoint is None) == bool(problems)
    return [problem.replace(f"{directory}/", "") for problem in problems]


class TestCheckpoint:
    @pytest.mark.parametrize(
        ("changes", "asked", "problem"),
        [
            (
                {"model_type": "gpt2"},
                {},
                'config.json has model_type "gpt2": this container compiles bert, distilbert, '
                "roberta, xlm-roberta",
            ),
            (
                {"model_type": ["bert"]},
                {},
                'config.json has model_type ["bert"]: this container compiles bert, distilbert, '
                "roberta, xlm-roberta",
            ),
            (
                {"architectures": ["BertForMaskedLM"]},
                {},
                'config.json has architectures ["BertForMaskedLM"], and question-answering needs '
                "BertForQuestionAnswering: another head was never trained for it",
            ),
            (
                {"is_decoder": True},
                {},
                "config.json is a decoder's (is_decoder, add_cross_attention), not an encoder's",
            ),
            (
                {"quantization_config": {"quant_method": "gptq"}},
                {},
                "config.json has quantization_config: give the checkpoint that it was quantised "
                "from",
            ),
            (
                {"position_embedding_type": "relative_key"},
                {},
                'config.json has position_embedding_type "relative_key", which transformers does '
                "not compute any more: only absolute positions can be compiled",
            ),
            (
                {"id2label": {"0": "A", "1": "B", "2": "C"}},
                {},
                "config.json has 3 labels, and question-answering computes 2 numbers for each "
                "token",
            ),
            (
                {"architectures": ["BertForTokenClassification"]},
                {"task": "token-classification"},
                "config.json: id2label must name the labels by their numbers, from 0 without gaps",
            ),
            (
                {},
                {"sequence_lengths": (16, 64)},
                "sequence_lengths go up to 64, and the checkpoint has 40 positions "
                "(max_position_embeddings=40): lower them",
            ),
            (
                {"model_type": "roberta", "architectures": None, "pad_token_id": 1},
                {"sequence_lengths": (39,)},
                "sequence_lengths go up to 39, and the checkpoint has 38 positions "
                "(max_position_embeddings=40): lower them",
            ),
            (
                {"max_position_embeddings": "long"},
                {},
                'config.json: max_position_embeddings must be a positive whole number, not "long"',
            ),
            (
                {"vocab_size": 10},
                {},
                "tokenizer.json has 15 tokens, and config.json has vocab_size 10: they are not of "
                "one model",
            ),
            (
                {"vocab_size": None},
                {},
                "config.json: vocab_size must be a positive whole number, not null",
            ),
        ],
    )
    def test_config(
        self, tmp_path: Path, changes: dict[str, Any], asked: dict[str, Any], problem: str
    ) -> None:
        write_checkpoint_files(tmp_path, **changes)
        assert problems_with(tmp_path, **asked) == [problem]

    @pytest.mark.parametrize(
        ("changes", "asked", "model_class"),
        [
            ({}, {}, "BertForQuestionAnswering"),
            # As old checkpoints are; what is not among their weights is found when they are loaded.
            ({"architectures": None}, {}, "BertForQuestionAnswering"),
            (
                {"architectures": ["BertForSequenceClassification"], **LABELS},
                {"task": "sequence-classification"},
                "BertForSequenceClassification",
            ),
            # Every architecture has the encoder.
            ({"architectures": ["BertForMaskedLM"]}, {"task": "embeddings"}, "BertModel"),
            (
                {"model_type": "xlm-roberta", "architectures": None, "pad_token_id": 1, **LABELS},
                {"task": "token-classification", "sequence_lengths": (38,)},
                "XLMRobertaForTokenClassification",
            ),
            (
                {"model_type": "distilbert", "architectures": None},
                {"sequence_lengths": (40,)},
                "DistilBertForQuestionAnswering",
            ),
        ],
    )
    def test_what_is_taken(
        self, tmp_path: Path, changes: dict[str, Any], asked: dict[str, Any], model_class: str
    ) -> None:
        write_checkpoint_files(tmp_path, **changes)
        checkpoint, problems = read_checkpoint(
            tmp_path, Hyperparameters(**{**vars(ASKED), **asked})
        )
        assert problems == []
        assert checkpoint is not None
        assert checkpoint.model_class == model_class
        assert checkpoint.weight_bytes == (tmp_path / "model.safetensors").stat().st_size

    @pytest.mark.parametrize(
        ("name", "content", "problem"),
        [
            ("config.json", b"[1]", "config.json must hold a JSON object"),
            ("config.json", b"{", "config.json is not valid JSON: "),
            ("tokenizer.json", b"{}", "tokenizer.json is not a tokenizer: "),
            (
                "model.safetensors",
                b"PK\x03\x04" * 9,
                "model.safetensors is no safetensors file, or cut off: copy the checkpoint again",
            ),
            (
                "model.safetensors",
                b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n",
                "model.safetensors is a pointer of Git LFS and not the weights: run git lfs pull "
                "there",
            ),
        ],
    )
    def test_files(self, tmp_path: Path, name: str, content: bytes, problem: str) -> None:
        write_checkpoint_files(tmp_path)
        (tmp_path / name).write_bytes(content)
        (found,) = problems_with(tmp_path)
        assert found.startswith(problem)

    def test_pickles_are_not_taken(self, tmp_path: Path) -> None:
        write_checkpoint_files(tmp_path)
        (tmp_path / "model.safetensors").rename(tmp_path / "pytorch_model.bin")
        assert problems_with(tmp_path) == [
            f"{tmp_path} has its weights in pytorch_model.bin only: save them as "
            "model.safetensors, which transformers' save_pretrained does"
        ]

    def test_a_tokenizer_of_a_decoder(self, tmp_path: Path) -> None:
        write_checkpoint_files(tmp_path)
        path = tmp_path / "tokenizer.json"
        document = json.loads(path.read_text())
        document["post_processor"] = None
        path.write_text(json.dumps(document))
        assert problems_with(tmp_path) == [
            "the tokenizer puts no special token before a text, as an encoder's does: take the "
            "tokenizer.json that the checkpoint came with"
        ]


class TestPooling:
    MODULES = (
        {"type": "sentence_transformers.models.Transformer", "path": ""},
        {"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"},
    )
    NORMALIZE: dict[str, str] = {  # noqa: RUF012
        "type": "sentence_transformers.models.Normalize",
        "path": "2_Normalize",
    }

    def write(self, directory: Path, modules: object, **pooling: Any) -> None:
        write_checkpoint_files(directory)
        (directory / "modules.json").write_text(json.dumps(modules))
        if pooling:
            (directory / "1_Pooling").mkdir()
            (directory / "1_Pooling" / "config.json").write_text(json.dumps(pooling))

    def read(self, directory: Path) -> tuple[str | None, bool]:
        asked = Hyperparameters(**{**vars(ASKED), "task": "embeddings"})
        checkpoint, problems = read_checkpoint(directory, asked)
        assert problems == []
        assert checkpoint is not None
        return checkpoint.pooling, checkpoint.normalize

    def test_is_the_mean_where_nothing_says(self, tmp_path: Path) -> None:
        write_checkpoint_files(tmp_path)
        assert self.read(tmp_path) == ("mean", False)

    @pytest.mark.parametrize(
        ("mode", "pooling"),
        [("pooling_mode_mean_tokens", "mean"), ("pooling_mode_cls_token", "cls")],
    )
    def test_is_that_of_the_checkpoint(self, tmp_path: Path, mode: str, pooling: str) -> None:
        others = {"pooling_mode_max_tokens": False, "word_embedding_dimension": 16}
        self.write(tmp_path, [*self.MODULES, self.NORMALIZE], **{mode: True}, **others)
        assert self.read(tmp_path) == (pooling, True)

    def test_no_other_task_looks_for_it(self, tmp_path: Path) -> None:
        self.write(tmp_path, [{"type": "Dense", "path": ""}])
        assert problems_with(tmp_path) == []

    @pytest.mark.parametrize(
        ("modules", "pooling", "problem"),
        [
            (
                [*MODULES, {"type": "sentence_transformers.models.Dense", "path": "2_Dense"}],
                {"pooling_mode_mean_tokens": True},
                "modules.json has a module Dense, which the container does not compute: it pools "
                "and normalizes what the encoder computes",
            ),
            (
                MODULES,
                {"pooling_mode_max_tokens": True},
                "1_Pooling/config.json pools by pooling_mode_max_tokens: the container does so by "
                "one of pooling_mode_mean_tokens, pooling_mode_cls_token",
            ),
            (
                MODULES,
                {"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": True},
                "1_Pooling/config.json pools by pooling_mode_mean_tokens, pooling_mode_cls_token: "
                "the container does so by one of pooling_mode_mean_tokens, "
                "pooling_mode_cls_token",
            ),
            (MODULES, {}, "1_Pooling/config.json is missing, which modules.json names"),
            (
                {"type": "Transformer"},
                {},
                "modules.json is no list of modules with type and path: string indices must be "
                "integers, not 'str'",
            ),
        ],
    )
    def test_what_the_container_cannot_do_is_refused(
        self, tmp_path: Path, modules: object, pooling: dict[str, bool], problem: str
    ) -> None:
        self.write(tmp_path, modules, **pooling)
        assert problems_with(tmp_path, task="embeddings") == [problem]


def test_what_the_worker_imports_keeps_to_python_3_10() -> None:
    """AWS's image for inf1 has it; the program's own is newer."""
    program = "import sys, containers.neuron.compile.worker; print(*sorted(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True, cwd=ROOT
    )
    imported = done.stdout.split()
    assert "torch" not in imported
    assert "tokenizers" not in imported
    ours = [name for name in imported if name.startswith("containers")]
    assert "containers.jobs.child" in ours
    later = ("compilers", "model", "modules", "parity")
    ours += ["containers.jobs.pretrained", "containers.serving.onnx_session"]
    for name in (*ours, *(f"containers.neuron.compile.{each}" for each in later)):
        source = ROOT.joinpath(*name.split("."))
        path = source / "__init__.py" if source.is_dir() else source.with_suffix(".py")
        tree = ast.parse(path.read_text("utf-8"), feature_version=(3, 10))
        names = {
            alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        # New in 3.11.
        assert names.isdisjoint({"Self", "UTC", "StrEnum", "assert_never"}), name


def test_serving_does_not_load_it() -> None:
    program = (
        "import sys\n"
        "import containers.neuron.__main__\n"
        "print([name for name in sys.modules if 'compile' in name and name.startswith('cont')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True, cwd=ROOT
    )
    assert done.stdout == "[]\n"
