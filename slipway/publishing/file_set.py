"""Refuses files that are no whole model, before any of them is sent.

Names, sizes and the beginnings of files tell enough: no weight is read.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from slipway.codes.code import Code
from slipway.config.checkpoint import (
    LONGEST_HEADER_BYTES,
    READ_FILES,
    CheckpointFacts,
    read_checkpoint,
)
from slipway.directories import LFS_POINTER, LONGEST_POINTER_BYTES
from slipway.errors import FieldPath, Kind, Problem, UserError
from slipway.json_text import parse_json

CONFIG, WEIGHTS, TOKENIZER = "config", "weights", "tokenizer"

# In the order in which transformers looks for them. Each may be in shards, which an index names.
_LOADED = (
    "model.safetensors",
    "pytorch_model.bin",
    "diffusion_pytorch_model.safetensors",
    "diffusion_pytorch_model.bin",
    "consolidated.safetensors",
)
_WEIGHTS = re.compile(r".*\.(safetensors|bin|pt|pth|onnx|engine|plan)")
# Weights of an adapter, which need a base, and what training leaves.
_NOT_WEIGHTS = re.compile(r"(.*/)?(adapter_|optimizer|scheduler|scaler|training_args|rng_state).*")
# Of Hugging Face, Mistral, diffusers, FasterTransformer, DeepSpeed, and engines of TensorRT-LLM.
_CONFIG = re.compile(
    r"(config|params|model_index|ds_inference_config)\.json|config\.ini|.*\.engine"
)
_TOKENIZER = re.compile(r"(.*/)?(tokenizer|vocab|tekken)[^/]*|.*\.(model|spm|tiktoken)")
_COPY_AGAIN = "Copy the checkpoint again."


@dataclass(frozen=True)
class FileSet:
    """Files that are to be published, wherever they lie.

    Args:
        shown_as: name of their folder in messages.
        sizes_bytes: size of each file, by its path in the folder.
        read: returns bytes of a file, by path, start and length.
    """

    shown_as: str
    sizes_bytes: Mapping[str, int]
    read: Callable[[str, int, int], bytes]

    def loaded(self, folder: str = "") -> tuple[str | None, list[str]]:
        """Returns the index that loaders follow in a folder, or None, and the paths of weights.

        Of several formats, the first of which there is any file: patterns for the Hub often take
        an index without its weights.
        """
        found: list[tuple[str | None, list[str]]] = []
        for path in (folder + name for name in _LOADED):
            if path in self.sizes_bytes:
                found.append((None, [path]))
            elif (index := f"{path}.index.json") in self.sizes_bytes:
                shards = self.document(index).get("weight_map")
                names = {str(name) for name in shards.values()} if isinstance(shards, dict) else ()
                found.append((index, sorted(f"{folder}{name}" for name in names)))
        there = (each for each in found if self.sizes_bytes.keys() & set(each[1]))
        return next(there, found[0] if found else (None, []))

    # Any: JSON.
    def document(self, path: str) -> Mapping[str, Any]:
        """Returns a file's JSON object; empty if the file is not there, or is something else."""
        try:
            found = parse_json(self.head(path))
        except (LookupError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def head(self, path: str) -> bytes:
        """Returns a safetensors file up to the end of its header; another file as a whole."""
        size_bytes = self.sizes_bytes[path]
        if size_bytes <= LONGEST_POINTER_BYTES or not path.endswith(".safetensors"):
            return self.read(path, 0, size_bytes) if size_bytes else b""
        start = self.read(path, 0, 8)
        length = int.from_bytes(start, "little")
        fits = 0 < length <= min(size_bytes - 8, LONGEST_HEADER_BYTES)
        return start + self.read(path, 8, length) if fits else start


Check = Callable[[FileSet], None]


def directory_files(directory: Path, shown_as: str, names: Collection[str]) -> FileSet:
    """Returns files of a directory, to be checked."""

    def read(path: str, start: int, length: int) -> bytes:
        with (directory / path).open("rb") as file:
            file.seek(start)
            return file.read(length)

    return FileSet(shown_as, {name: (directory / name).stat().st_size for name in names}, read)


def checkpoint_facts(files: FileSet) -> CheckpointFacts:
    """Returns what the JSON files and the headers of a checkpoint say.

    Raises:
        UserError: a file of the weights is missing or damaged.
    """
    index, weights = files.loaded()
    names = files.sizes_bytes.keys() & {index, *weights, *READ_FILES}
    sizes_bytes = {name: files.sizes_bytes[name] for name in names}
    require_whole(replace(files, sizes_bytes=sizes_bytes))
    with TemporaryDirectory() as folder:
        for name in names:
            if name.endswith((".json", ".jinja", ".safetensors")):
                Path(folder, name).write_bytes(files.head(name))
        return read_checkpoint(Path(folder), files.shown_as)


def is_weights(path: str) -> bool:
    """Returns whether a file has weights of a model by its name."""
    return _WEIGHTS.fullmatch(path) is not None and not _NOT_WEIGHTS.fullmatch(path)


def require_whole(
    files: FileSet,
    needs: Collection[str] = (),
    field: FieldPath = ("artifacts", "weights"),
) -> None:
    """Checks that files are whole, and a whole model.

    Args:
        files: what is to be published.
        needs: of CONFIG, WEIGHTS and TOKENIZER, what the container does not start without.
        field: of the config, for a report.

    Raises:
        UserError: everything that is missing or damaged.
    """
    if found := [*_damaged(files), *_missing(files, needs)]:
        raise UserError(
            Problem(Code.FILES_NOT_WHOLE, Kind.VALUE, f"{files.shown_as}{fault}", remedy, field)
            for fault, remedy in found
        )


def _damaged(files: FileSet) -> Iterator[tuple[str, str]]:
    for path, size_bytes in sorted(files.sizes_bytes.items()):
        is_safetensors = path.endswith(".safetensors")
        is_short = size_bytes <= LONGEST_POINTER_BYTES
        head = files.head(path) if is_safetensors or is_short else b""
        if head.startswith(LFS_POINTER):
            remedy = "Run `git lfs pull` where it comes from, and copy it again."
            yield f"/{path} is a pointer of Git LFS in place of the file", remedy
        elif not size_bytes and _WEIGHTS.fullmatch(path):
            yield f"/{path} is empty", _COPY_AGAIN
        elif is_safetensors and (expected_bytes := _expected_bytes(head)) != size_bytes:
            fault = f"/{path} has {size_bytes} bytes, and its header tells of {expected_bytes}"
            yield fault if expected_bytes else f"/{path} is no safetensors file", _COPY_AGAIN
    for folder in sorted({path[: path.rfind("/") + 1] for path in files.sizes_bytes}):
        index, shards = files.loaded(folder)
        missing = [path for path in shards if path not in files.sizes_bytes]
        if index and not shards:
            yield f"/{index}: its weight_map must name the file of each weight", _COPY_AGAIN
        elif missing:
            yield f" lacks {', '.join(missing)}, which {index} names", _COPY_AGAIN


def _expected_bytes(head: bytes) -> int:
    """Returns the size that a safetensors file has by its header; 0 without a header."""
    try:
        length = int.from_bytes(head[:8], "little")
        header = parse_json(head[8 : 8 + length])
        ends = [each["data_offsets"][1] for name, each in header.items() if name != "__metadata__"]
        return int(8 + length + max(ends, default=0))
    except (ValueError, LookupError, TypeError, AttributeError):
        return 0


def _missing(files: FileSet, needs: Collection[str]) -> Iterator[tuple[str, str]]:
    paths = files.sizes_bytes.keys()
    has_weights = any(is_weights(path) or path.endswith(".index.json") for path in paths)
    if needs and not has_weights and "adapter_config.json" in paths:
        base = files.document("adapter_config.json").get("base_model_name_or_path")
        remedy = "Merge it into its base with PEFT's `merge_and_unload()`, and publish the result."
        yield (
            f" is an adapter (adapter_config.json) without the weights of its base, {base}",
            remedy,
        )
        return
    if CONFIG in needs and not any(map(_CONFIG.fullmatch, paths)):
        yield " has no config.json", "Name the folder of the checkpoint itself."
    if WEIGHTS in needs and not has_weights:
        remedy = "Publish weights as safetensors; no container loads GGUF files."
        yield " has no weights, such as model.safetensors", remedy
    if TOKENIZER in needs and not any(map(_TOKENIZER.fullmatch, paths)):
        remedy = "Save it there with transformers' `AutoTokenizer`, by `save_pretrained`."
        yield " has no tokenizer, such as tokenizer.json", remedy
