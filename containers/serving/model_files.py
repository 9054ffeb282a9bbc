"""The files that every family's model directory has. It keeps to Python 3.10."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from containers.serving.predictor import ModelLoadError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

CONFIG_FILE: Final = "config.json"
TOKENIZER_FILE: Final = "tokenizer.json"


def missing_files(model_dir: Path, names: Iterable[str]) -> list[str]:
    """Returns the names of files that a directory lacks; `ModelLoadError` if there is none."""
    if not model_dir.is_dir():
        raise ModelLoadError(f"{model_dir} is not a directory: no model data was mounted")
    return [name for name in names if not (model_dir / name).is_file()]


def read_tokenizer(path: Path) -> "Tokenizer":
    """Reads a tokenizer.json without its truncation and padding; `ModelLoadError` if it is none."""
    # Imported here, because a worker's Python may lack the package.
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(path))
    # The Rust bindings raise plain Exception.
    except Exception as error:
        raise ModelLoadError(f"{path} is not a tokenizer: {error}") from error
    # The file may set both, but texts are measured whole, and padded by the caller.
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer
