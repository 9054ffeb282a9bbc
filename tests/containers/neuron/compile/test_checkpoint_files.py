"""The files of a checkpoint: those that a compile job reads, and those that it refuses."""

import json
from dataclasses import replace

import pytest

from containers.encoders.compile.checkpoint import read_checkpoint
from tests.containers.neuron.compile.jobs import ASKED, write_checkpoint_files

LABELS = {"id2label": {"0": "NO", "1": "YES"}}


def read(directory, **asked):
    return read_checkpoint(directory, replace(ASKED, **asked))


def problems_with(directory, **asked):
    checkpoint, problems = read(directory, **asked)
    assert (checkpoint is None) == bool(problems)
    return [problem.replace(f"{directory}/", "") for problem in problems]


def test_every_problem_with_a_config_is_reported_at_once(tmp_path):
    write_checkpoint_files(
        tmp_path,
        architectures=["BertForMaskedLM"],
        id2label={"0": "A", "1": "B", "2": "C"},
        is_decoder=True,
        max_position_embeddings="long",
        position_embedding_type="relative_key",
        quantization_config={"quant_method": "gptq"},
        vocab_size=10,
    )
    assert problems_with(tmp_path) == [
        "config.json has quantization_config: give the checkpoint that it was quantised from",
        'config.json has architectures ["BertForMaskedLM"], and question-answering needs '
        "BertForQuestionAnswering: another head was never trained for it",
        "config.json is a decoder's (is_decoder, add_cross_attention), not an encoder's",
        'config.json has position_embedding_type "relative_key", which transformers does not '
        "compute any more: only absolute positions can be compiled",
        "config.json has 3 labels, and question-answering computes 2 numbers for each token",
        'config.json: max_position_embeddings must be a positive whole number, not "long"',
        "tokenizer.json has 15 tokens, and config.json has vocab_size 10: they are not of one "
        "model",
    ]


ROBERTA = {"model_type": "roberta", "architectures": None, "pad_token_id": 1}
POSITIONS = (
    "sequence_lengths go up to {}, and the checkpoint has {} positions "
    "(max_position_embeddings=40): lower them"
)


@pytest.mark.parametrize(
    ("changes", "asked", "problem"),
    [
        *(
            (
                {"model_type": kind},
                {},
                f"config.json has model_type {json.dumps(kind)}: this container compiles bert, "
                "distilbert, roberta, xlm-roberta",
            )
            for kind in ("gpt2", ["bert"])
        ),
        (
            {"architectures": ["BertForTokenClassification"]},
            {"task": "token-classification"},
            "config.json: id2label must name the labels by their numbers, from 0 without gaps",
        ),
        ({}, {"sequence_lengths": (16, 64)}, POSITIONS.format(64, 40)),
        (ROBERTA, {"sequence_lengths": (39,)}, POSITIONS.format(39, 38)),
        (
            {"vocab_size": None},
            {},
            "config.json: vocab_size must be a positive whole number, not null",
        ),
    ],
)
def test_config(tmp_path, changes, asked, problem):
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
            ROBERTA | LABELS | {"model_type": "xlm-roberta"},
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
def test_what_is_taken(tmp_path, changes, asked, model_class):
    write_checkpoint_files(tmp_path, **changes)
    checkpoint, problems = read(tmp_path, **asked)
    assert problems == []
    assert checkpoint.model_class == model_class
    assert checkpoint.weight_bytes == (tmp_path / "model.safetensors").stat().st_size


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
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
            "model.safetensors is a pointer of Git LFS and not the weights: run git lfs pull there",
        ),
    ],
)
def test_files(tmp_path, name, content, problem):
    write_checkpoint_files(tmp_path)
    (tmp_path / name).write_bytes(content)
    (found,) = problems_with(tmp_path)
    assert found.startswith(problem)


def test_pickles_are_not_taken(tmp_path):
    write_checkpoint_files(tmp_path)
    (tmp_path / "model.safetensors").rename(tmp_path / "pytorch_model.bin")
    assert problems_with(tmp_path) == [
        f"{tmp_path} has its weights in pytorch_model.bin only: save them as "
        "model.safetensors, which transformers' save_pretrained does"
    ]


def test_a_tokenizer_of_a_decoder(tmp_path):
    write_checkpoint_files(tmp_path)
    path = tmp_path / "tokenizer.json"
    document = json.loads(path.read_text())
    document["post_processor"] = None
    path.write_text(json.dumps(document))
    assert problems_with(tmp_path) == [
        "the tokenizer puts no special token before a text, as an encoder's does: take the "
        "tokenizer.json that the checkpoint came with"
    ]


MODULES = (
    {"type": "sentence_transformers.models.Transformer", "path": ""},
    {"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"},
)
NORMALIZE = {"type": "sentence_transformers.models.Normalize", "path": "2_Normalize"}


def write_modules(directory, modules, **pooling):
    write_checkpoint_files(directory)
    (directory / "modules.json").write_text(json.dumps(modules))
    if pooling:
        (directory / "1_Pooling").mkdir()
        (directory / "1_Pooling" / "config.json").write_text(json.dumps(pooling))


def pooling_of(directory):
    checkpoint, problems = read(directory, task="embeddings")
    assert problems == []
    return checkpoint.pooling, checkpoint.normalize


def test_pooling_is_that_of_the_checkpoint_and_the_mean_where_nothing_says(tmp_path):
    write_checkpoint_files(tmp_path)
    assert pooling_of(tmp_path) == ("mean", False)
    others = {"pooling_mode_max_tokens": False, "word_embedding_dimension": 16}
    for mode, pooling in (("mean_tokens", "mean"), ("cls_token", "cls")):
        directory = tmp_path / pooling
        directory.mkdir()
        write_modules(directory, [*MODULES, NORMALIZE], **{f"pooling_mode_{mode}": True}, **others)
        assert pooling_of(directory) == (pooling, True)


def test_no_other_task_looks_for_the_pooling(tmp_path):
    write_modules(tmp_path, [{"type": "Dense", "path": ""}])
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
def test_pooling_that_the_container_cannot_do_is_refused(tmp_path, modules, pooling, problem):
    write_modules(tmp_path, modules, **pooling)
    assert problems_with(tmp_path, task="embeddings") == [problem]
