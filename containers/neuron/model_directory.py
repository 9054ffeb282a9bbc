"""The contents of a model directory of this family, checked before a worker is started.

Required: neuron.json and the graphs that it names, config.json and tokenizer.json.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from containers.neuron.manifest import (
    MANIFEST_FILE,
    SEQUENCE_CLASSIFICATION,
    TOKEN_CLASSIFICATION,
    Manifest,
)
from containers.serving.predictor import ModelLoadError

CONFIG_FILE: Final = "config.json"
TOKENIZER_FILE: Final = "tokenizer.json"

_LABELLED_TASKS: Final = (SEQUENCE_CLASSIFICATION, TOKEN_CLASSIFICATION)
_SCORE_FUNCTIONS: Final = {
    "multi_label_classification": "sigmoid",
    "regression": "none",
    "single_label_classification": "softmax",
}


@dataclass(frozen=True)
class ModelConfig:
    """The parts of a Hugging Face config.json that serving needs.

    Attributes:
        vocabulary_size: number of tokens that the model knows.
        pad_token_id: token that fills short rows.
        label_names: names of the labels by number (`id2label`); empty for tasks without labels.
        score_function: function that turns logits into scores, by `problem_type`.
    """

    vocabulary_size: int
    pad_token_id: int
    label_names: tuple[str, ...]
    score_function: str


def check_files(model_dir: Path) -> None:
    """Checks that the files exist which every model has.

    Raises:
        ModelLoadError: the message names all missing files.
    """
    if not model_dir.is_dir():
        raise ModelLoadError(f"{model_dir} is not a directory: no model data was mounted")
    names = (MANIFEST_FILE, CONFIG_FILE, TOKENIZER_FILE)
    missing = [name for name in names if not (model_dir / name).is_file()]
    if missing:
        raise ModelLoadError(f"{model_dir} lacks {', '.join(missing)}")


def check_graphs(model_dir: Path, manifest: Manifest) -> None:
    """Checks that the manifest's graphs exist.

    Raises:
        ModelLoadError: the message names all missing files.
    """
    names = sorted(set(manifest.graphs.values()))
    missing = [name for name in names if not (model_dir / name).is_file()]
    if missing:
        raise ModelLoadError(f"{model_dir} lacks {', '.join(missing)}, which {MANIFEST_FILE} names")


def read_config(model_dir: Path, task: str) -> ModelConfig:
    """Reads config.json.

    Raises:
        ModelLoadError: the message names every field that is missing or not usable.
    """
    path = model_dir / CONFIG_FILE
    try:
        config = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ModelLoadError(f"{path} is not valid JSON: {error}") from error
    if not isinstance(config, dict):
        raise ModelLoadError(f"{path} must hold a JSON object")
    problems: list[str] = []
    vocabulary_size = config.get("vocab_size")
    if not _is_whole(vocabulary_size, 1):
        problems.append(
            f"vocab_size must be a positive whole number, not {json.dumps(vocabulary_size)}"
        )
    pad_token_id = config.get("pad_token_id", 0)
    if not _is_whole(pad_token_id, 0):
        problems.append(f"pad_token_id must be a token id, not {json.dumps(pad_token_id)}")
    labels = _labels(config, problems) if task in _LABELLED_TASKS else ()
    kind = config.get("problem_type")
    if kind is not None and kind not in _SCORE_FUNCTIONS:
        problems.append(
            f"problem_type must be one of {', '.join(_SCORE_FUNCTIONS)}, not {json.dumps(kind)}"
        )
    if problems:
        raise ModelLoadError(f"{path}: {'; '.join(problems)}")
    # A single label is a yes or no, as in `transformers`.
    by_default = "sigmoid" if len(labels) == 1 else "softmax"
    return ModelConfig(
        vocabulary_size=vocabulary_size or 0,
        pad_token_id=pad_token_id,
        label_names=labels,
        score_function=_SCORE_FUNCTIONS[kind] if kind else by_default,
    )


# Any: JSON.
def _labels(config: dict[str, Any], problems: list[str]) -> tuple[str, ...]:
    labels = config.get("id2label")
    numbers = [str(number) for number in range(len(labels))] if isinstance(labels, dict) else []
    if (
        not isinstance(labels, dict)
        or not labels
        or sorted(labels) != sorted(numbers)
        or not all(isinstance(name, str) for name in labels.values())
    ):
        problems.append("id2label must name the labels by their numbers, from 0 without gaps")
        return ()
    return tuple(labels[number] for number in numbers)


def _is_whole(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least
