"""Reads how a checkpoint of Sentence Transformers turns token vectors into the vector of a text.

Its modules.json lists the modules that a text goes through: the encoder, a pooling, often a
normalization (https://sbert.net/docs/package_reference/sentence_transformer/models.html). A vector
made otherwise than in training is wrong without any visible sign, so a module that the container
does not support is refused.
"""

import json
from pathlib import Path
from typing import Final

from containers.jobs.checkpoint_files import json_object

_MODULES_FILE: Final = "modules.json"
_DEFAULT_POOLING: Final = "mean"
_POOLINGS: Final = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "cls"}
_MODE_PREFIX: Final = "pooling_mode_"


def read_pooling(directory: Path, problems: list[str]) -> tuple[str, bool]:
    """Returns the pooling of a checkpoint and whether it normalizes vectors.

    Without modules.json the pooling is the mean of the tokens, which most encoders were trained
    for. Modules that the container does not support are appended to `problems`.
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
