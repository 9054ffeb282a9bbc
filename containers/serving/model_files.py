"""The files that every family's model directory has. It keeps to Python 3.10."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from containers.serving.predictor import ModelLoadError

CONFIG_FILE: Final = "config.json"
TOKENIZER_FILE: Final = "tokenizer.json"


def missing_files(model_dir: Path, names: Iterable[str]) -> list[str]:
    """Returns the names of files that a directory lacks; `ModelLoadError` if there is none."""
    if not model_dir.is_dir():
        raise ModelLoadError(f"{model_dir} is not a directory: no model data was mounted")
    return [name for name in names if not (model_dir / name).is_file()]
