"""The files of a checkpoint: those that a compile job reads, and those that it refuses."""

import json

import pytest

from containers.encoders.compile.checkpoint import read_checkpoint
from containers.neuron.compile.job import Hyperparameters
from tests.containers.neuron.compile.jobs import ASKED, write_checkpoint_files

LABELS = {"id2label": {"0": "NO", "1": "YES"}}


def problems_with(directory, **asked):
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
    def test_config(self, tmp_path, changes, asked, problem):
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
    def test_what_is_taken(self, tmp_path, changes, asked, model_class):
        write_checkpoint_files(tmp_path, **changes)
        checkpoint, problems = read_checkpoint(
            tmp_path, Hyperparameters(**{**vars(ASKED), **asked})
        )
        assert problems == []
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
    def test_files(self, tmp_path, name, content, problem):
        write_checkpoint_files(tmp_path)
        (tmp_path / name).write_bytes(content)
        (found,) = problems_with(tmp_path)
        assert found.startswith(problem)

    def test_pickles_are_not_taken(self, tmp_path):
        write_checkpoint_files(tmp_path)
        (tmp_path / "model.safetensors").rename(tmp_path / "pytorch_model.bin")
        assert problems_with(tmp_path) == [
            f"{tmp_path} has its weights in pytorch_model.bin only: save them as "
            "model.safetensors, which transformers' save_pretrained does"
        ]

    def test_a_tokenizer_of_a_decoder(self, tmp_path):
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

    def write(self, directory, modules, **pooling):
        write_checkpoint_files(directory)
        (directory / "modules.json").write_text(json.dumps(modules))
        if pooling:
            (directory / "1_Pooling").mkdir()
            (directory / "1_Pooling" / "config.json").write_text(json.dumps(pooling))

    def read(self, directory):
        asked = Hyperparameters(**{**vars(ASKED), "task": "embeddings"})
        checkpoint, problems = read_checkpoint(directory, asked)
        assert problems == []
        return checkpoint.pooling, checkpoint.normalize

    def test_is_the_mean_where_nothing_says(self, tmp_path):
        write_checkpoint_files(tmp_path)
        assert self.read(tmp_path) == ("mean", False)

    @pytest.mark.parametrize(
        ("mode", "pooling"),
        [("pooling_mode_mean_tokens", "mean"), ("pooling_mode_cls_token", "cls")],
    )
    def test_is_that_of_the_checkpoint(self, tmp_path, mode, pooling):
        others = {"pooling_mode_max_tokens": False, "word_embedding_dimension": 16}
        self.write(tmp_path, [*self.MODULES, self.NORMALIZE], **{mode: True}, **others)
        assert self.read(tmp_path) == (pooling, True)

    def test_no_other_task_looks_for_it(self, tmp_path):
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
    def test_what_the_container_cannot_do_is_refused(self, tmp_path, modules, pooling, problem):
        self.write(tmp_path, modules, **pooling)
        assert problems_with(tmp_path, task="embeddings") == [problem]
