"""Checks of a Hugging Face checkpoint's files that need no torch."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import tokenizers

from containers.serving.json_files import read_object
from containers.serving.model_files import CONFIG_FILE, TOKENIZER_FILE
from containers.serving.predictor import ModelLoadError

SAFETENSORS_FILE: Final = "model.safetensors"
PICKLED_FILE: Final = "pytorch_model.bin"

_LFS_POINTER: Final = b"version https://git-lfs.github.com/spec/"
_LARGEST_SAFETENSORS_HEADER_BYTES: Final = 100_000_000


@dataclass(frozen=True)
class CheckpointFiles:
    directory: Path
    weight_files: tuple[Path, ...]

    @property
    def weight_bytes(self) -> int:
        return sum(path.stat().st_size for path in self.weight_files)


@dataclass(frozen=True)
class CompilableModels:
    """The models that a container compiles.

    `model_type` is of config.json, `kind` a noun for messages ("a language model"). `architectures`
    are the classes of transformers that have every weight of such a model.
    """

    model_type: str
    kind: str
    architectures: tuple[str, ...]

    # Any: JSON.
    def check(self, path: Path, document: dict[str, Any], problems: list[str]) -> bool:
        """Returns whether a checkpoint has the model type; problems are appended to `problems`.

        Another architecture of the type is a problem too.
        """
        found = document.get("model_type")
        if found != self.model_type:
            problems.append(
                f"{path} has model_type {json.dumps(found)}: this container compiles "
                f"{self.model_type} only; serve other models with container: lmi"
            )
            return False
        architectures = document.get("architectures")
        named = architectures if isinstance(architectures, list) else []
        if named and not any(name in self.architectures for name in named):
            problems.append(
                f"{path} has architectures {json.dumps(named)}, and only {self.kind} can be "
                f"compiled: {', '.join(self.architectures)}"
            )
        return True


# Any: JSON.
def config_document(directory: Path, problems: list[str]) -> dict[str, Any] | None:
    """Returns the content of config.json; None if there is none.

    Problems are appended to `problems`, also those of a checkpoint that no family can compile.
    """
    path = directory / CONFIG_FILE
    if not path.is_file():
        problems.append(f"{directory} lacks {CONFIG_FILE}: it must be a Hugging Face checkpoint")
        return None
    document = json_object(path, problems)
    if document is not None and document.get("quantization_config"):
        problems.append(
            f"{path} has quantization_config: give the checkpoint that it was quantised from"
        )
    return document


def checked_weight_files(
    directory: Path, problems: list[str], *, takes_pickles: bool
) -> tuple[Path, ...]:
    """Returns the files of a checkpoint's weights, whole or in shards; appends to `problems`.

    With `takes_pickles`, PyTorch's own files are accepted if there are no safetensors.
    """
    # In the order in which transformers looks for them.
    whole_files = (SAFETENSORS_FILE, PICKLED_FILE) if takes_pickles else (SAFETENSORS_FILE,)
    names = [name for whole in whole_files for name in (whole, f"{whole}.index.json")]
    name = next((name for name in names if (directory / name).is_file()), None)
    if name is None:
        problems.append(_no_weights(directory, takes_pickles=takes_pickles))
        return ()
    whole = directory / name
    paths = _shards(whole, problems) if whole.suffix == ".json" else (whole,)
    for path in paths:
        problem = _weight_file_problem(path)
        if problem is not None:
            problems.append(problem)
    return paths


def no_tokenizer(directory: Path) -> str:
    return (
        f"{directory} lacks {TOKENIZER_FILE}: save it there with transformers' "
        "AutoTokenizer.from_pretrained(...).save_pretrained(...)"
    )


def tokenizer_problem(path: Path, vocabulary_size: int | None) -> str | None:
    """Returns the problem with a tokenizer.json, or None.

    The model's vocabulary may not be smaller than the tokenizer's; None if its size is not known.
    """
    try:
        tokenizer = tokenizers.Tokenizer.from_file(str(path))
    # The library has no exception class of its own.
    except Exception as error:
        return f"cannot load {path}: {error}"
    tokens = tokenizer.get_vocab_size()
    if vocabulary_size is not None and tokens > vocabulary_size:
        return (
            f"{path} has {tokens} tokens, and {CONFIG_FILE} has vocab_size {vocabulary_size}: they "
            "are not of one model"
        )
    return None


# Any: JSON.
def json_object(path: Path, problems: list[str]) -> dict[str, Any] | None:
    """Returns a file's JSON object; None after a problem, which is appended to `problems`."""
    try:
        return read_object(path)
    except ModelLoadError as error:
        problems.append(str(error))
        return None


def _no_weights(directory: Path, *, takes_pickles: bool) -> str:
    if takes_pickles:
        return (
            f"{directory} has no weights: neither {SAFETENSORS_FILE} nor {PICKLED_FILE}, whole or "
            "in shards with an index"
        )
    pickled = (PICKLED_FILE, f"{PICKLED_FILE}.index.json")
    if any((directory / name).is_file() for name in pickled):
        return (
            f"{directory} has its weights in {PICKLED_FILE} only: save them as {SAFETENSORS_FILE}, "
            "which transformers' save_pretrained does"
        )
    return f"{directory} has no weights: no {SAFETENSORS_FILE}, whole or in shards with an index"


def _shards(index: Path, problems: list[str]) -> tuple[Path, ...]:
    document = json_object(index, problems)
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
    """Returns the problem with a file of weights that its size and header show, or None."""
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
