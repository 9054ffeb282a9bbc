"""What a checkpoint must hold, checked in seconds, before torch is loaded and memory is spent."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import tokenizers

from containers.serving.predictor import ModelLoadError
from containers.tensorrt.model_directory import (
    CONFIG_FILE,
    TOKENIZER_FILE,
    ModelConfig,
    read_config,
)

SLOW_TOKENIZER_FILES: Final = ("vocab.json", "merges.txt")

_MODEL_TYPE: Final = "gpt2"
# Models of this type with a head for something else; loaded as language models they would answer,
# with a head that was never trained.
_ARCHITECTURES: Final = ("GPT2LMHeadModel", "GPT2DoubleHeadsModel", "GPT2Model")
_SAFETENSORS: Final = "model.safetensors"
_PICKLED: Final = "pytorch_model.bin"
# In the order in which transformers looks for them.
_WEIGHT_FILES: Final = (
    _SAFETENSORS,
    f"{_SAFETENSORS}.index.json",
    _PICKLED,
    f"{_PICKLED}.index.json",
)
_LFS_POINTER: Final = b"version https://git-lfs.github.com/spec/"
_LARGEST_SAFETENSORS_HEADER_BYTES: Final = 100_000_000


@dataclass(frozen=True)
class Checkpoint:
    """A Hugging Face directory that has been checked.

    Attributes:
        directory: where it is.
        config: its config.json and generation_config.json.
        weight_files: all files of its weights.
    """

    directory: Path
    config: ModelConfig
    weight_files: tuple[Path, ...]

    @property
    def weight_bytes(self) -> int:
        """Size of all weights together."""
        return sum(path.stat().st_size for path in self.weight_files)


def read_checkpoint(directory: Path) -> tuple[Checkpoint | None, list[str]]:
    """Checks a checkpoint's files.

    Returns:
        The checkpoint, and every problem with it; None where there is one.
    """
    if not directory.is_dir():
        return None, [f"{directory} is not a directory: give the job an input channel `weights`"]
    problems: list[str] = []
    config = _checked_config(directory, problems)
    weight_files = _checked_weight_files(directory, problems)
    _check_tokenizer(directory, config, problems)
    if problems or config is None:
        return None, problems
    return Checkpoint(directory=directory, config=config, weight_files=weight_files), []


def _checked_config(directory: Path, problems: list[str]) -> ModelConfig | None:
    path = directory / CONFIG_FILE
    if not path.is_file():
        problems.append(f"{directory} lacks {CONFIG_FILE}: it must be a Hugging Face checkpoint")
        return None
    document = _json_object(path, problems)
    if document is None:
        return None
    model_type = document.get("model_type")
    if model_type != _MODEL_TYPE:
        problems.append(
            f"{path} has model_type {json.dumps(model_type)}: this container compiles "
            f"{_MODEL_TYPE} only; serve other models with container: lmi"
        )
        return None
    architectures = document.get("architectures")
    named = architectures if isinstance(architectures, list) else []
    if named and not any(name in _ARCHITECTURES for name in named):
        problems.append(
            f"{path} has architectures {json.dumps(named)}, and only a language model can be "
            f"compiled: {', '.join(_ARCHITECTURES)}"
        )
    if document.get("add_cross_attention"):
        problems.append(
            f"{path} has add_cross_attention: the decoder of an encoder-decoder model cannot be "
            "compiled alone"
        )
    if document.get("quantization_config"):
        problems.append(
            f"{path} has quantization_config: give the checkpoint that it was quantised from"
        )
    try:
        return read_config(directory)
    except ModelLoadError as error:
        problems.append(str(error))
        return None


def _checked_weight_files(directory: Path, problems: list[str]) -> tuple[Path, ...]:
    name = next((name for name in _WEIGHT_FILES if (directory / name).is_file()), None)
    if name is None:
        problems.append(
            f"{directory} has no weights: neither {_SAFETENSORS} nor {_PICKLED}, whole or in "
            "shards with an index"
        )
        return ()
    whole = directory / name
    paths = _shards(whole, problems) if whole.suffix == ".json" else (whole,)
    for path in paths:
        problem = _weight_file_problem(path)
        if problem is not None:
            problems.append(problem)
    return paths


def _shards(index: Path, problems: list[str]) -> tuple[Path, ...]:
    document = _json_object(index, problems)
    if document is None:
        return ()
    weight_map = document.get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        problems.append(f"{index} has no weight_map: it must name the file of each weight")
        return ()
    names = sorted({name for name in weight_map.values() if isinstance(name, str)})
    outside = [name for name in names if Path(name).name != name]
    if outside:
        problems.append(f"{index} names files outside its directory: {', '.join(outside)}")
        return ()
    missing = [name for name in names if not (index.parent / name).is_file()]
    if missing:
        problems.append(f"{index.parent} lacks {', '.join(missing)} ({index.name} names them)")
        return ()
    return tuple(index.parent / name for name in names)


def _weight_file_problem(path: Path) -> str | None:
    """What is wrong with a file of weights, as far as its size and its header show it."""
    size_bytes = path.stat().st_size
    with path.open("rb") as file:
        start = file.read(len(_LFS_POINTER))
        if start == _LFS_POINTER:
            return f"{path} is a pointer of Git LFS and not the weights: run git lfs pull there"
        if path.suffix != ".safetensors":
            return None if size_bytes else f"{path} is empty: copy the checkpoint again"
        # The layout: a little-endian 64-bit header length, the header as JSON, the tensors' bytes.
        file.seek(0)
        header_bytes = int.from_bytes(file.read(8), "little")
        if header_bytes > min(size_bytes, _LARGEST_SAFETENSORS_HEADER_BYTES) or size_bytes < 8:
            return f"{path} is no safetensors file, or cut off: copy the checkpoint again"
        try:
            header = json.loads(file.read(header_bytes))
            ends = [
                entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"
            ]
            expected_bytes = 8 + header_bytes + max(ends, default=0)
        except (ValueError, RecursionError, AttributeError, LookupError, TypeError):
            return f"{path} has a header that is no safetensors header: copy the checkpoint again"
    if size_bytes != expected_bytes:
        return (
            f"{path} has {size_bytes} bytes, and its header tells of {expected_bytes}: "
            "copy the checkpoint again"
        )
    return None


def _check_tokenizer(directory: Path, config: ModelConfig | None, problems: list[str]) -> None:
    path = directory / TOKENIZER_FILE
    if not path.is_file():
        if not all((directory / name).is_file() for name in SLOW_TOKENIZER_FILES):
            problems.append(
                f"{directory} lacks {TOKENIZER_FILE}, and {' and '.join(SLOW_TOKENIZER_FILES)} to "
                "make it from"
            )
        return
    problem = tokenizer_problem(path, config)
    if problem is not None:
        problems.append(problem)


def tokenizer_problem(path: Path, config: ModelConfig | None) -> str | None:
    """What is wrong with a tokenizer.json, or None; with a config, whether the two fit."""
    try:
        tokenizer = tokenizers.Tokenizer.from_file(str(path))
    # The library has no exception class of its own.
    except Exception as error:
        return f"cannot load {path}: {error}"
    tokens = tokenizer.get_vocab_size()
    if config is not None and tokens > config.vocabulary_size:
        return (
            f"{path} has {tokens} tokens, and {CONFIG_FILE} has vocab_size "
            f"{config.vocabulary_size}: they are not of one model"
        )
    return None


def _json_object(path: Path, problems: list[str]) -> dict[str, Any] | None:
    try:
        document = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        problems.append(f"{path} is not valid JSON: {error}")
        return None
    if not isinstance(document, dict):
        problems.append(f"{path} must hold a JSON object")
        return None
    return document
