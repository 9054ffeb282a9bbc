"""The contents of an encoder's model directory, checked before anything is loaded.

Required: the manifest and the graphs that it names, config.json and tokenizer.json.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from containers.encoders.manifest import (
    SEQUENCE_CLASSIFICATION,
    TOKEN_CLASSIFICATION,
    Manifest,
    manifest_file,
)
from containers.serving.json_files import (
    POSITIVE,
    Field,
    is_whole,
    one_of,
    problems_with,
    read_object,
)
from containers.serving.model_files import CONFIG_FILE, TOKENIZER_FILE, missing_files
from containers.serving.predictor import ModelLoadError

_LABELLED_TASKS: Final = (SEQUENCE_CLASSIFICATION, TOKEN_CLASSIFICATION)
_SCORE_FUNCTIONS: Final = {
    "multi_label_classification": "sigmoid",
    "regression": "none",
    "single_label_classification": "softmax",
}
_SIZES: Final = {
    "vocab_size": POSITIVE,
    "pad_token_id": Field("a token id", lambda value: is_whole(value, 0)),
}


@dataclass(frozen=True)
class ModelConfig:
    """The parts of a Hugging Face config.json that serving needs.

    `label_names` are those of `id2label` in order, and none for tasks without labels.
    `score_function` turns logits into scores, by `problem_type`.
    """

    vocabulary_size: int
    pad_token_id: int
    label_names: tuple[str, ...]
    score_function: str


def check_files(model_dir: Path) -> None:
    """Raises one `ModelLoadError` that names every missing file, of those that every model has."""
    missing = missing_files(model_dir, (manifest_file(model_dir), CONFIG_FILE, TOKENIZER_FILE))
    if missing:
        raise ModelLoadError(f"{model_dir} lacks {', '.join(missing)}")


def check_graphs(model_dir: Path, manifest: Manifest) -> None:
    """Raises one `ModelLoadError` that names every missing graph of the manifest."""
    missing = missing_files(model_dir, sorted(set(manifest.graphs.values())))
    if missing:
        raise ModelLoadError(
            f"{model_dir} lacks {', '.join(missing)}, which {manifest_file(model_dir)} names"
        )


def read_config(model_dir: Path, task: str) -> ModelConfig:
    """Reads config.json; one `ModelLoadError` names every field that is missing or not usable."""
    path = model_dir / CONFIG_FILE
    config = {"pad_token_id": 0} | read_object(path)
    problems = problems_with(config, _SIZES)
    labels = _labels(config, problems) if task in _LABELLED_TASKS else ()
    if config.get("problem_type") is not None:
        problems += problems_with(config, {"problem_type": one_of(_SCORE_FUNCTIONS)})
    if problems:
        raise ModelLoadError(f"{path}: {'; '.join(problems)}")
    # A single label is a yes or no, as in `transformers`.
    by_default = "sigmoid" if len(labels) == 1 else "softmax"
    return ModelConfig(
        vocabulary_size=config["vocab_size"],
        pad_token_id=config["pad_token_id"],
        label_names=labels,
        score_function=_SCORE_FUNCTIONS.get(config.get("problem_type") or "", by_default),
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
