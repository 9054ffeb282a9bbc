"""The input of a compile job: a checkpoint of an encoder, checked without torch."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from containers.encoders.compile.job import EncoderHyperparameters
from containers.encoders.manifest import (
    EMBEDDINGS,
    QUESTION_ANSWERING,
    SEQUENCE_CLASSIFICATION,
    TOKEN_CLASSIFICATION,
)
from containers.encoders.model_directory import read_config
from containers.encoders.tokenization import TextTokenizer
from containers.jobs.checkpoint_files import (
    CheckpointFiles,
    checked_weight_files,
    config_document,
    json_object,
    no_tokenizer,
)
from containers.serving.model_files import CONFIG_FILE, TOKENIZER_FILE
from containers.serving.predictor import ModelLoadError

# model_type -> the beginning of its classes' names.
_CLASSES: Final = {
    "bert": "Bert",
    "distilbert": "DistilBert",
    "roberta": "Roberta",
    "xlm-roberta": "XLMRoberta",
}
# Task -> the end of the name of the class with that task's head.
_HEADS: Final = {
    QUESTION_ANSWERING: "ForQuestionAnswering",
    SEQUENCE_CLASSIFICATION: "ForSequenceClassification",
    TOKEN_CLASSIFICATION: "ForTokenClassification",
    EMBEDDINGS: "Model",
}
# Model types whose positions begin after the padding token's id.
_OFFSET_POSITIONS: Final = ("roberta", "xlm-roberta")
# Positions of all four model types if config.json does not set them.
_DEFAULT_POSITIONS: Final = 512
# Labels of question answering: the first and the last token of an answer.
_ANSWER_LABELS: Final = 2
_FEWEST_TEXT_TOKENS: Final = 2

# The modules that a text goes through: the encoder, a pooling, often a normalization
# (https://sbert.net/docs/package_reference/sentence_transformer/models.html).
_MODULES_FILE: Final = "modules.json"
_DEFAULT_POOLING: Final = "mean"
_POOLINGS: Final = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "cls"}
_MODE_PREFIX: Final = "pooling_mode_"


@dataclass(frozen=True)
class Checkpoint(CheckpointFiles):
    """A Hugging Face directory that has been checked.

    `model_class` is the class of transformers with the task's head. For embeddings, `pooling` says
    how token vectors become the vector of a text, and `normalize` whether it has length 1 if a
    request does not say.
    """

    model_class: str
    pooling: str | None
    normalize: bool


def read_checkpoint(
    directory: Path, asked: EncoderHyperparameters | None
) -> tuple[Checkpoint | None, list[str]]:
    """Returns the checkpoint, or None if there is a problem; and every problem.

    With invalid hyperparameters, which are None, only the files are checked.
    """
    problems: list[str] = []
    document = config_document(directory, problems)
    model_class = ""
    if document is not None:
        model_class = _model_class(directory / CONFIG_FILE, document, asked, problems)
        _check_config(directory, document, asked, problems)
    weight_files = checked_weight_files(directory, problems, takes_pickles=False)
    _check_tokenizer(directory, document or {}, asked, problems)
    pooling, normalize = None, False
    if asked is not None and asked.task == EMBEDDINGS:
        pooling, normalize = _read_pooling(directory, problems)
    if problems or asked is None:
        return None, problems
    return Checkpoint(directory, weight_files, model_class, pooling, normalize), []


def _model_class(
    path: Path, document: dict[str, Any], asked: EncoderHyperparameters | None, problems: list[str]
) -> str:
    model_type = document.get("model_type")
    start = _CLASSES.get(model_type) if isinstance(model_type, str) else None
    if start is None:
        problems.append(
            f"{path} has model_type {json.dumps(model_type)}: this container compiles "
            f"{', '.join(_CLASSES)}"
        )
        return ""
    if asked is None:
        return ""
    model_class = f"{start}{_HEADS[asked.task]}"
    architectures = document.get("architectures")
    named = architectures if isinstance(architectures, list) else []
    # Every architecture has the encoder, and embeddings need nothing else.
    if named and asked.task != EMBEDDINGS and model_class not in named:
        problems.append(
            f"{path} has architectures {json.dumps(named)}, and {asked.task} needs "
            f"{model_class}: another head was never trained for it"
        )
    return model_class


def _check_config(
    directory: Path,
    document: dict[str, Any],
    asked: EncoderHyperparameters | None,
    problems: list[str],
) -> None:
    path = directory / CONFIG_FILE
    if document.get("is_decoder") or document.get("add_cross_attention"):
        problems.append(
            f"{path} is a decoder's (is_decoder, add_cross_attention), not an encoder's"
        )
    embedding = document.get("position_embedding_type", "absolute")
    if embedding != "absolute":
        problems.append(
            f"{path} has position_embedding_type {json.dumps(embedding)}, which transformers does "
            "not compute any more: only absolute positions can be compiled"
        )
    if asked is None:
        return
    try:
        # Read as the container reads it when it serves.
        read_config(directory, asked.task)
    except ModelLoadError as error:
        problems.append(str(error))
    labels = document.get("id2label")
    count = len(labels) if isinstance(labels, dict) else _ANSWER_LABELS
    if asked.task == QUESTION_ANSWERING and count != _ANSWER_LABELS:
        problems.append(
            f"{path} has {count} labels, and {QUESTION_ANSWERING} computes {_ANSWER_LABELS} "
            "numbers for each token"
        )
    _check_positions(path, document, asked, problems)


def _check_positions(
    path: Path, document: dict[str, Any], asked: EncoderHyperparameters, problems: list[str]
) -> None:
    stated = document.get("max_position_embeddings", _DEFAULT_POSITIONS)
    if not isinstance(stated, int) or isinstance(stated, bool) or stated < 1:
        problems.append(
            f"{path}: max_position_embeddings must be a positive whole number, not "
            f"{json.dumps(stated)}"
        )
        return
    positions = stated
    if document.get("model_type") in _OFFSET_POSITIONS:
        padding = document.get("pad_token_id")
        positions -= 1 + (padding if isinstance(padding, int) else 1)
    longest = asked.sequence_lengths[-1]
    if longest > positions:
        problems.append(
            f"sequence_lengths go up to {longest}, and the checkpoint has {positions} positions "
            f"(max_position_embeddings={stated}): lower them"
        )


def _check_tokenizer(
    directory: Path,
    document: dict[str, Any],
    asked: EncoderHyperparameters | None,
    problems: list[str],
) -> None:
    path = directory / TOKENIZER_FILE
    if not path.is_file():
        problems.append(no_tokenizer(directory))
        return
    try:
        tokenizer = TextTokenizer.read(path)
    except ModelLoadError as error:
        problems.append(str(error))
        return
    vocabulary_size = document.get("vocab_size")
    if isinstance(vocabulary_size, int) and tokenizer.vocabulary_size > vocabulary_size:
        problems.append(
            f"{path} has {tokenizer.vocabulary_size} tokens, and {CONFIG_FILE} has vocab_size "
            f"{vocabulary_size}: they are not of one model"
        )
    special_tokens = tokenizer.pair.special_tokens
    if asked is not None and asked.sequence_lengths[-1] < special_tokens + _FEWEST_TEXT_TOKENS:
        problems.append(
            f"a sequence of {asked.sequence_lengths[-1]} tokens leaves no room for texts beside "
            f"{special_tokens} special tokens"
        )


def _read_pooling(directory: Path, problems: list[str]) -> tuple[str, bool]:
    """Returns the pooling of a checkpoint and whether it normalizes vectors.

    Without modules.json the pooling is the mean of the tokens, which most encoders were trained
    for. Modules that the container does not support are appended to `problems`, because a vector
    made otherwise than in training is wrong without any visible sign.
    """
    path = directory / _MODULES_FILE
    if not path.is_file():
        return _DEFAULT_POOLING, False
    try:
        modules = json.loads(path.read_bytes())
        kinds = [(str(module["type"]).rpartition(".")[2], module["path"]) for module in modules]
    except (ValueError, RecursionError, LookupError, TypeError) as error:
        problems.append(f"{path} is no list of modules with type and path: {error}")
        return _DEFAULT_POOLING, False
    pooling, normalize = _DEFAULT_POOLING, False
    for kind, place in kinds:
        if kind == "Pooling":
            pooling = _pooling(directory / str(place) / "config.json", problems)
        elif kind == "Normalize":
            normalize = True
        elif kind != "Transformer":
            problems.append(
                f"{path} has a module {kind}, which the container does not compute: it pools and "
                "normalizes what the encoder computes"
            )
    return pooling, normalize


def _pooling(path: Path, problems: list[str]) -> str:
    if not path.is_file():
        problems.append(f"{path} is missing, which {_MODULES_FILE} names")
        return _DEFAULT_POOLING
    config = json_object(path, problems)
    if config is None:
        return _DEFAULT_POOLING
    modes = [name for name, value in config.items() if name.startswith(_MODE_PREFIX) and value]
    if len(modes) != 1 or modes[0] not in _POOLINGS:
        problems.append(
            f"{path} pools by {', '.join(modes) or 'nothing'}: the container does so by one of "
            f"{', '.join(_POOLINGS)}"
        )
        return _DEFAULT_POOLING
    return _POOLINGS[modes[0]]
