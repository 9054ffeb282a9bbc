"""Checkpoints of random T5 models become model directories that answer as the models do."""

import json
import shutil

import pytest

from tests.support.groups import TORCH_MARKS, load

torch = load("torch", group="torch")
transformers = load("transformers", group="torch")
load("onnxscript", group="torch")
safetensors_torch = load("safetensors.torch", group="torch")

from containers.jobs.report import CompileError  # noqa: E402  (after the skips)
from containers.tensorrt.compile.job import Hyperparameters  # noqa: E402
from containers.tensorrt.compile.job import Job as PreparedJob  # noqa: E402
from containers.triton.compile import model as torch_model  # noqa: E402
from containers.triton.compile.checkpoint import read_checkpoint  # noqa: E402
from containers.triton.compile.worker import compile_checkpoint  # noqa: E402
from containers.triton.decoding import answers  # noqa: E402
from containers.triton.model_directory import check_files, read_config  # noqa: E402
from containers.triton.onnx_session import OnnxSequenceSession  # noqa: E402
from tests.containers.tensorrt.compile.jobs import HYPERPARAMETERS  # noqa: E402
from tests.containers.tensorrt.t5_models import END, prompts, random_t5  # noqa: E402
from tests.containers.triton.checkpoints import write_checkpoint  # noqa: E402
from tests.support.compile_jobs import Job  # noqa: E402

pytestmark = [*TORCH_MARKS]

NEW_TOKENS = 12
# Beams and a limit that no graph has, and the end of text.
GENERATION = {"num_beams": 3, "max_length": 5, "eos_token_id": END, "decoder_start_token_id": 0}


@pytest.fixture(scope="module")
def model():
    """As FLAN-T5: gated, and a head of its own; its answers vary with the prompt."""
    return random_t5(seed=12, gated=True, encoder_layers=1, decoder_layers=1)


@pytest.fixture(scope="module")
def made(model, tmp_path_factory):
    """A job that was done, of a checkpoint whose weights are pickled; tests only read it."""
    job = Job(tmp_path_factory.mktemp("job"), "triton", HYPERPARAMETERS)
    write_checkpoint(model, job.weights)
    (job.weights / "generation_config.json").write_text(json.dumps(GENERATION))
    (job.weights / "model.safetensors").unlink()
    torch.save(model.state_dict(), job.weights / "pytorch_model.bin")
    assert job.run() == 0, job.events
    return job


@pytest.fixture
def exported(made, monkeypatch):
    """Every compile gets the graphs of `model`: an export takes seconds."""

    def export_graphs(given, directory, precision):
        for name in ("encoder.onnx", "decoder.onnx"):
            shutil.copyfile(made.model / name, directory / name)

    monkeypatch.setattr(torch_model, "export_graphs", export_graphs)


@pytest.fixture
def save(tmp_path_factory):
    def write(given):
        directory = tmp_path_factory.mktemp("checkpoint")
        write_checkpoint(given, directory)
        return directory

    return write


def compiled(directory, scratch):
    asked = Hyperparameters(target="cpu", max_batch_size=8, max_input_tokens=16, max_new_tokens=12)
    checkpoint, problems = read_checkpoint(directory, None)
    assert problems == []
    scratch.mkdir()
    compile_checkpoint(PreparedJob(asked, checkpoint), None, scratch)
    return scratch


def answered(model_dir, texts):
    config = read_config(model_dir)
    found = answers(
        OnnxSequenceSession(model_dir, threads=1),
        [tuple(text) for text in texts],
        max_new_tokens=NEW_TOKENS,
        start_token_id=config.start_token_id,
        end_token_ids=config.end_token_ids,
    )
    return [list(answer) for answer in found]


def generated(model, texts):
    found = []
    for text in texts:
        output = model.generate(
            torch.tensor([text]),
            do_sample=False,
            max_new_tokens=NEW_TOKENS,
            eos_token_id=END,
            pad_token_id=0,
            # Without this, generate makes a cache of as many layers as the encoder has.
            past_key_values=transformers.EncoderDecoderCache(
                transformers.DynamicCache(), transformers.DynamicCache()
            ),
        )
        tokens = output[0, 1:].tolist()
        found.append(tokens[: tokens.index(END)] if END in tokens else tokens)
    return found


def test_answers_are_those_of_generate(model, made):
    texts = prompts(3, 7, 2, 11, 1, 16, 5, 4, 9)
    expected = generated(model, texts)
    assert answered(made.model, texts) == expected
    # A model that says one thing whatever it is given would prove nothing.
    assert len({tuple(answer) for answer in expected}) > 4


def test_files_and_log_of_a_job(made):
    names = ["config.json", "generation_config.json", "tokenizer.json"]
    assert made.model_files == sorted([*names, "encoder.onnx", "decoder.onnx"])
    assert not check_files(made.model)
    for name in names:
        assert (made.model / name).read_bytes() == (made.weights / name).read_bytes()
    assert list(made.output.iterdir()) == []
    finished = made.named("stage_finished")
    stages = ["import_packages", "load_checkpoint", "write_configs", "export_graphs"]
    assert [line["stage"] for line in finished] == [*stages, "verify_graphs"]
    assert set(finished[3]["bytes"]) == {"encoder.onnx", "decoder.onnx"}
    # Three prompts, each alone and all in a batch.
    assert finished[4]["tokens_compared"] == 24
    [end] = made.named("compile_finished")
    assert set(end["files"]) == set(made.model_files)
    # transformers warns of the two heads that config.json allows, see `save_checkpoint`.
    others = {line["logger"] for line in made.events if line["level"] != "INFO"}
    assert others <= {"transformers.modeling_utils"}


def test_generation_config_is_made_where_there_is_none(model, save, tmp_path, exported):
    directory = save(model)
    (directory / "generation_config.json").unlink()
    made = compiled(directory, tmp_path / "made")
    document = json.loads((made / "generation_config.json").read_text())
    assert document["decoder_start_token_id"] == 0
    assert read_config(made) == read_config(directory)


def test_graphs_of_other_weights_are_refused(exported, save, tmp_path):
    other = random_t5(seed=15, gated=True, encoder_layers=1, decoder_layers=1)
    with pytest.raises(CompileError, match="the graph was made from other weights"):
        compiled(save(other), tmp_path / "made")


def test_missing_weights_are_refused(model, save, tmp_path):
    directory = save(model)
    weights = {
        name: tensor.clone() for name, tensor in model.state_dict().items() if ".wi_0." not in name
    }
    safetensors_torch.save_file(weights, directory / "model.safetensors", {"format": "pt"})
    with pytest.raises(CompileError) as error:
        compiled(directory, tmp_path / "made")
    assert str(error.value) == (
        f"the checkpoint in {directory} lacks 2 weights: "
        "decoder.block.0.layer.2.DenseReluDense.wi_0.weight, "
        "encoder.block.0.layer.1.DenseReluDense.wi_0.weight"
    )


def test_half_precision_keeps_the_layers_that_outgrow_it(model, save):
    checkpoint, _ = read_checkpoint(save(model), None)
    loaded = torch_model.load_model(checkpoint, "fp16")
    types = {name: weights.dtype for name, weights in loaded.named_parameters()}
    wide = {name for name, dtype in types.items() if dtype == torch.float32}
    assert wide == {name for name in types if ".wo." in name}
    assert wide
