"""What a compile job refuses, before it loads anything large: exit code 1, one line, no model."""

import json

import pytest

from containers.triton.compile.checkpoint import read_checkpoint, run
from containers.triton.model_directory import SequenceConfig
from tests.containers.tensorrt.t5_models import END, HEAD_DIM, HEADS, VOCABULARY
from tests.containers.triton.checkpoints import CONFIG, word_tokenizer


def refusal(job):
    return job.refusal(job.run_here(run))


def test_all_problems_are_reported_together(job):
    job.set_hyperparameters(target="gpu", dtype="bf16", max_new_tokens=None, beams="4")
    (job.weights / "config.json").write_text(json.dumps(CONFIG | {"model_type": "bart"}))
    (job.weights / "model.safetensors").unlink()
    (job.weights / "tokenizer.json").unlink()
    assert refusal(job) == (
        'hyperparameter target="gpu" is not cpu, or a compute capability such as "sm86"; '
        'hyperparameter dtype="bf16" is not fp16 or fp32; '
        "hyperparameter max_new_tokens is missing: it is a whole number from 1 to 1000000; "
        "hyperparameter beams is unknown; "
        f'{job.weights}/config.json has model_type "bart": this container compiles t5 only; serve '
        f"other models with container: lmi; {job.weights} has no weights: neither "
        "model.safetensors nor pytorch_model.bin, whole or in shards with an index; "
        f"{job.weights} lacks tokenizer.json: save it there with transformers' "
        "AutoTokenizer.from_pretrained(...).save_pretrained(...)"
    )


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        (
            {"architectures": ["T5EncoderModel"]},
            'config.json has architectures ["T5EncoderModel"], and only a sequence-to-sequence '
            "model can be compiled: T5ForConditionalGeneration",
        ),
        (
            {"num_heads": 0, "eos_token_id": None},
            "config.json: num_heads must be a positive whole number, not 0; eos_token_id must be a "
            "token id or a list of them, not null",
        ),
        (
            {"decoder_start_token_id": VOCABULARY},
            f"config.json has decoder_start_token_id {VOCABULARY}, and its vocab_size is "
            f"{VOCABULARY}: the decoder's first token must be in the vocabulary",
        ),
        (
            {"vocab_size": VOCABULARY - 1},
            f"tokenizer.json has {VOCABULARY} tokens, and config.json has vocab_size "
            f"{VOCABULARY - 1}: they are not of one model",
        ),
    ],
)
def test_config(job, changes, problem):
    (job.weights / "config.json").write_text(json.dumps(CONFIG | changes))
    assert problem in refusal(job)


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("generation_config.json", b"{", "generation_config.json is not valid JSON"),
        ("tokenizer.json", b"{}", "cannot load"),
    ],
)
def test_files(job, name, content, problem):
    (job.weights / name).write_bytes(content)
    assert problem in refusal(job)


def test_checkpoint_that_passes(job):
    (job.weights / "generation_config.json").write_text('{"eos_token_id": [1, 5]}')
    # A vocabulary is often padded to a round number of tokens.
    word_tokenizer(50).save(str(job.weights / "tokenizer.json"))
    checkpoint, problems = read_checkpoint(job.weights, None)
    assert problems == []
    assert checkpoint.config == SequenceConfig(
        layers=2,
        heads=HEADS,
        head_dim=HEAD_DIM,
        vocabulary_size=VOCABULARY,
        start_token_id=0,
        end_token_ids=frozenset({END, 5}),
    )
    assert checkpoint.weight_files == (job.weights / "model.safetensors",)


def test_older_checkpoints_name_no_architecture(job):
    config = {name: value for name, value in CONFIG.items() if name != "architectures"}
    (job.weights / "config.json").write_text(json.dumps(config))
    assert read_checkpoint(job.weights, None)[1] == []
