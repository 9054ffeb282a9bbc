"""Random checkpoints become graphs that compute the same, or are refused with the reason."""

import copy
import errno
import json
import os
import pickle
import resource
import shutil
from pathlib import Path

import pytest

from tests.support.groups import TORCH_MARKS, load

torch = load("torch", group="torch")
transformers = load("transformers", group="torch")
load("onnxscript", group="torch")
onnx_ir = load("onnx_ir", group="torch")
safetensors_torch = load("safetensors.torch", group="torch")

import tokenizers  # noqa: E402  (after the skips: without the extra, nothing below is needed)

from containers.jobs.report import CompileError  # noqa: E402
from containers.tensorrt.compile.checkpoint import read_checkpoint  # noqa: E402
from containers.tensorrt.compile.job import Hyperparameters  # noqa: E402
from containers.tensorrt.compile.job import Job as PreparedJob  # noqa: E402
from containers.tensorrt.compile.model import load_model  # noqa: E402
from containers.tensorrt.compile.worker import compile_checkpoint  # noqa: E402
from containers.tensorrt.export import gpt2, graph_files  # noqa: E402
from containers.tensorrt.export.parity import check_step_graph  # noqa: E402
from containers.tensorrt.model_directory import check_files  # noqa: E402

pytestmark = [*TORCH_MARKS]


class Payload:
    def __init__(self, directory):
        self.directory = directory

    def __reduce__(self):
        return os.mkdir, (self.directory,)


def test_a_pickle_runs_no_code(save, tmp_path):
    witness = tmp_path / "witness"
    directory = save()
    (directory / "model.safetensors").unlink()
    path = directory / "pytorch_model.bin"
    # Of the protocol that torch writes.
    path.write_bytes(pickle.dumps(Payload(str(witness)), protocol=2))
    # The payload works: an unrestricted unpickler runs it.
    pickle.loads(path.read_bytes())  # noqa: S301  (our own)
    assert witness.exists()
    witness.rmdir()

    with pytest.raises(CompileError) as error:
        compiled(directory, tmp_path / "made")
    assert not witness.exists()
    assert str(error.value).startswith(
        f"cannot load the checkpoint in {directory}: UnpicklingError: Weights only load failed"
    )


LAYERS, HEADS, WIDTH, POSITIONS = 2, 2, 32, 48


@pytest.fixture(scope="module")
def tokenizer():
    """A byte-level tokenizer of this test's own text, as GPT-2's are made."""
    trained = tokenizers.ByteLevelBPETokenizer()
    trained.train_from_iterator(
        [Path(__file__).read_text()], vocab_size=400, special_tokens=["<|endoftext|>"]
    )
    return trained


@pytest.fixture(scope="module")
def model(tokenizer):
    """Random weights, large enough that the greedy tokens vary with the prompt."""
    torch.manual_seed(11)
    config = transformers.GPT2Config(
        vocab_size=tokenizer.get_vocab_size(),
        n_positions=POSITIONS,
        n_embd=WIDTH,
        n_layer=LAYERS,
        n_head=HEADS,
        initializer_range=0.3,
        bos_token_id=0,
        eos_token_id=0,
    )
    return transformers.GPT2LMHeadModel(config).eval()


@pytest.fixture(scope="module")
def save(model, tokenizer, tmp_path_factory):
    """Writes the random checkpoint, or another with its tokenizer, into a directory of its own."""

    def write(given=model):
        directory = tmp_path_factory.mktemp("checkpoint")
        given.save_pretrained(directory)
        tokenizer.save(str(directory / "tokenizer.json"))
        return directory

    return write


def compiled(directory, scratch, **limits):
    asked = Hyperparameters(
        target="cpu", **({"max_batch_size": 2, "max_input_tokens": 8, "max_new_tokens": 8} | limits)
    )
    checkpoint, problems = read_checkpoint(directory, None)
    assert problems == []
    scratch.mkdir()
    compile_checkpoint(PreparedJob(asked, checkpoint), None, scratch)
    return scratch


GENERATION = {
    "num_beams": 3,
    "repetition_penalty": 1.7,
    "max_length": 5,
    "eos_token_id": [0, 1],
}


@pytest.fixture(scope="module")
def made(save, tmp_path_factory):
    """What becomes of the random checkpoint, with `GENERATION`; tests only read it."""
    directory = save()
    (directory / "generation_config.json").write_text(json.dumps(GENERATION))
    return compiled(directory, tmp_path_factory.mktemp("made") / "model")


def test_the_graph_is_the_checkpoints_and_generation_config_does_not_disturb_it(model, made):
    checked = check_step_graph(made / "model.onnx", model, [[5, 9, 200], [7], [1, 2, 3, 4, 5, 6]])
    assert checked.ties == 0
    assert (made / "generation_config.json").read_text() == json.dumps(GENERATION)


def sharded(model, directory):
    (directory / "model.safetensors").unlink()
    model.save_pretrained(directory, max_shard_size="40KB")
    assert len(list(directory.glob("model-*.safetensors"))) > 1


def pickled(model, directory):
    (directory / "model.safetensors").unlink()
    torch.save(model.state_dict(), directory / "pytorch_model.bin")


def headless(model, directory):
    """As openai-community/gpt2 is: the names of the model without its head."""
    model.transformer.save_pretrained(directory)


@pytest.mark.parametrize("change", [sharded, pickled, headless])
def test_every_layout_of_a_checkpoint_gives_the_same_graph(
    model, save, made, tmp_path, monkeypatch, change
):
    """It is exported once: here it stands for what would come of equal weights in equal layers."""
    directory = save()
    change(model, directory)
    exported = []

    def of_the_same_weights(given, path, *, precision):
        exported.append((given.state_dict(), given.config.to_diff_dict(), precision))
        shutil.copyfile(made / "model.onnx", path)

    monkeypatch.setattr(gpt2, "export_gpt2_step", of_the_same_weights)
    # Which compares what the graph computes with the loaded model.
    compiled(directory, tmp_path / "again")

    ((weights, config, precision),) = exported
    expected = model.state_dict()
    assert weights.keys() == expected.keys()
    assert all(torch.equal(weights[name], expected[name]) for name in expected)
    sizes = ("n_layer", "n_head", "n_embd", "n_positions", "vocab_size")
    assert [config.get(name) for name in sizes] == [
        model.config.to_diff_dict().get(name) for name in sizes
    ]
    assert precision == "fp32"


class TestWeightsBesideTheGraph:
    """What happens above a gigabyte of weights, with a lower threshold."""

    @pytest.fixture(autouse=True)
    def _threshold(self, monkeypatch):
        monkeypatch.setattr(graph_files, "_LARGEST_INLINE_WEIGHTS_BYTES", 0)

    def test_they_are_part_of_the_model_directory(self, model, tokenizer, save, tmp_path):
        """And so are the files that the checkpoint lacks, which are made."""
        directory = save()
        (directory / "generation_config.json").unlink()
        (directory / "tokenizer.json").unlink()
        tokenizer.save_model(str(directory))
        assert (directory / "vocab.json").exists()

        made = compiled(directory, tmp_path / "made")

        weights = made / "model.onnx.data"
        parameters = sum(tensor.numel() for tensor in model.parameters())
        # Biases and norms are small enough to stay in the graph.
        biases = sum(tensor.numel() for tensor in model.parameters() if tensor.dim() == 1)
        assert weights.stat().st_size >= 4 * (parameters - biases)
        check_files(made)
        assert check_step_graph(made / "model.onnx", model, [[5, 9, 200], [7]]).ties == 0

        loaded = tokenizers.Tokenizer.from_file(str(made / "tokenizer.json"))
        for text in ("def tokens_of_graph", "<|endoftext|>", "  ünï\n"):
            assert loaded.encode(text).ids == tokenizer.encode(text).ids
            assert loaded.decode(loaded.encode(text).ids, skip_special_tokens=False) == text
        generation = json.loads((made / "generation_config.json").read_text())
        assert generation["eos_token_id"] == 0

    def test_full_volume_is_an_error_of_the_system(self, save, made, tmp_path, monkeypatch):
        """Which the worker tells from a bug by its number; a file's limit stands in for it."""
        directory = save()

        def export(given, path, *, precision):
            graph_files.save_graph(onnx_ir.load(made / "model.onnx"), path, {})

        monkeypatch.setattr(gpt2, "export_gpt2_step", export)
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
        try:
            with pytest.raises(OSError, match="File too large") as error:
                compiled(directory, tmp_path / "made")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert error.value.errno == errno.EFBIG


def test_as_few_positions_as_can_be(tokenizer, save, tmp_path):
    config = transformers.GPT2Config(
        vocab_size=tokenizer.get_vocab_size(), n_positions=2, n_embd=8, n_layer=1, n_head=1
    )
    directory = save(transformers.GPT2LMHeadModel(config))
    made = compiled(directory, tmp_path / "made", max_input_tokens=1, max_new_tokens=1)
    assert (made / "model.onnx").is_file()


def test_missing_weights_are_refused(model, save, tmp_path):
    directory = save()
    weights = {
        name: tensor.clone()
        for name, tensor in model.state_dict().items()
        if "h.1.attn" not in name and name != "lm_head.weight"
    }
    safetensors_torch.save_file(weights, directory / "model.safetensors")
    with pytest.raises(CompileError) as error:
        compiled(directory, tmp_path / "made")
    assert str(error.value) == (
        f"the checkpoint in {directory} lacks 4 weights: transformer.h.1.attn.c_attn.bias, "
        "transformer.h.1.attn.c_attn.weight, transformer.h.1.attn.c_proj.bias and 1 more"
    )


@pytest.mark.parametrize(("value", "precision"), [(float("nan"), "fp32"), (70_000.0, "fp16")])
def test_weights_that_are_not_finite_are_refused(model, save, value, precision):
    directory = save()
    weights = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    del weights["lm_head.weight"]
    weights["transformer.h.0.mlp.c_fc.bias"][3] = value
    safetensors_torch.save_file(weights, directory / "model.safetensors")
    checkpoint, _ = read_checkpoint(directory, None)
    with pytest.raises(CompileError) as error:
        load_model(transformers.GPT2LMHeadModel, checkpoint.directory, precision)
    assert str(error.value) == (
        f"1 weights are not finite in {precision}: transformer.h.0.mlp.c_fc.bias"
    )


def test_a_wrong_graph_is_refused(model, save, made, tmp_path, monkeypatch):
    other = copy.deepcopy(model)
    with torch.no_grad():
        other.transformer.ln_f.weight.mul_(1.03)

    def export_another(given, path, *, precision):
        shutil.copyfile(made / "model.onnx", path)

    monkeypatch.setattr(gpt2, "export_gpt2_step", export_another)
    with pytest.raises(CompileError, match="the graph was made from other weights"):
        compiled(save(other), tmp_path / "made")
