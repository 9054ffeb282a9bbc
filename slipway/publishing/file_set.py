"""Refuses files that are no whole model, before any of them is sent.

Names, sizes and the beginnings of files tell enough: no weight is read.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from slipway.codes.code import Code
from slipway.config.checkpoint import (
    LFS_POINTER,
    LONGEST_HEADER_BYTES,
    READ_FILES,
    CheckpointFacts,
    read_checkpoint,
)
from slipway.directories import LONGEST_POINTER_BYTES
from slipway.errors import FieldPath, Kind, Problem, UserError
from slipway.json_text import parse_json
from slipway.publishing.manifest import named

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
# `vocab.json` needs its merges, and tokenizer_config.json has no vocabulary.
_TOKENIZER = re.compile(
    r"(.*/)?(?!tokenizer_config\.json|vocab\.json)(tokenizer|vocab|tekken)[^/]*"
    r"|.*\.(model|spm|tiktoken)"
)
# Classes of transformers that work on bytes or characters, or have no merges.
_NEEDS_NO_MERGES = re.compile(r"(ByT5|Canine|Perceiver|Vits|.*CTC)")
_SHARD = re.compile(r"(.+)-\d+-of-\d+\.(safetensors|bin)")
# Of tensors that are stored once for several layers, an index may name each.
_MAY_BE_TIED = re.compile(r"lm_head|emb|shared|wte|predictions")


@dataclass(frozen=True)
class FileSet:
    """Files that are to be published, wherever they lie.

    `read` returns bytes of a file, by path, start and length. `left_out` has the files beside them
    that are not published. `again` is the remedy for a file that is missing or damaged there.
    """

    shown_as: str
    sizes_bytes: Mapping[str, int]
    read: Callable[[str, int, int], bytes]
    left_out: Mapping[str, int] = field(default_factory=dict)
    again: str = "Copy the checkpoint again."

    def only(self, paths: Collection[str]) -> "FileSet":
        """Returns some of the files; the others are left out."""
        kept, left = dict[str, int](), dict[str, int]()
        for path, size_bytes in sorted(self.sizes_bytes.items()):
            (kept if path in paths else left)[path] = size_bytes
        return replace(self, sizes_bytes=kept, left_out=left)

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
        return self.parsed(path, dict) or {}

    def parsed(self, path: str, kind: type) -> Any:
        """Returns a JSON file's content; None if it is not there, or is something else."""
        try:
            found = parse_json(self.head(path))
        except (LookupError, ValueError):
            return None
        return found if isinstance(found, kind) else None

    def head(self, path: str) -> bytes:
        """Returns a safetensors file up to the end of its header; another file as a whole."""
        size_bytes = self.sizes_bytes[path]
        if size_bytes <= LONGEST_POINTER_BYTES or not path.endswith(".safetensors"):
            return self.read(path, 0, size_bytes) if size_bytes else b""
        start = self.read(path, 0, 8)
        length = int.from_bytes(start, "little")
        fits = 0 < length <= min(size_bytes - 8, LONGEST_HEADER_BYTES)
        return start + self.read(path, 8, length) if fits else start


# Returns the files that are published; raises `UserError` for files that are no whole model.
Select = Callable[[FileSet], FileSet]


def directory_files(directory: Path, shown_as: str, names: Collection[str]) -> FileSet:
    def read(path: str, start: int, length: int) -> bytes:
        with (directory / path).open("rb") as file:
            file.seek(start)
            return file.read(length)

    return FileSet(shown_as, {name: (directory / name).stat().st_size for name in names}, read)


def checkpoint_facts(files: FileSet) -> CheckpointFacts:
    """Returns what a checkpoint's JSON files and headers say; raises `UserError` if damaged."""
    index, weights = files.loaded()
    names = files.sizes_bytes.keys() & {index, *weights, *READ_FILES}
    require_whole(files.only(names))
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
) -> FileSet:
    """Checks that files are whole, and a whole model; returns them.

    `needs` has what the container does not start without: of CONFIG, WEIGHTS and TOKENIZER. Raises
    `UserError` with everything that is missing or damaged.
    """
    tensors = dict[str, Collection[str]]()
    found = [*_damaged(files, tensors), *_missing(files, needs)]
    if not found and CONFIG in needs:
        found = [*_contradictions(files, tensors)]
    if found:
        raise UserError(
            Problem(Code.FILES_NOT_WHOLE, Kind.VALUE, f"{files.shown_as}{fault}", remedy, field)
            for fault, remedy in found
        )
    return files


def gguf_alone(files: FileSet) -> tuple[str, str] | None:
    """Returns fault and remedy of files whose only weights are GGUF; None for any others."""
    paths = files.sizes_bytes.keys() | files.left_out.keys()
    found = sorted(path for path in paths if path.endswith(".gguf"))
    if not found or any(map(is_weights, files.sizes_bytes)):
        return None
    # vLLM takes the path of one such file, and DJL Serving gives it a folder.
    remedy = "Publish the safetensors that they were made of. Only a model.py loads GGUF."
    return f" has its weights as GGUF alone ({named(found)})", remedy


def _damaged(files: FileSet, tensors: dict[str, Collection[str]]) -> Iterator[tuple[str, str]]:
    """Yields what is damaged or missing; notes the tensors of each safetensors file."""
    for path, size_bytes in sorted(files.sizes_bytes.items()):
        is_safetensors = path.endswith(".safetensors")
        is_short = size_bytes <= LONGEST_POINTER_BYTES
        head = files.head(path) if is_safetensors or is_short else b""
        if head.startswith(LFS_POINTER):
            remedy = "Run `git lfs pull` where it comes from, and copy it again."
            yield f"/{path} is a pointer of Git LFS in place of the file", remedy
        elif not size_bytes and _WEIGHTS.fullmatch(path):
            yield f"/{path} is empty", files.again
        elif is_safetensors:
            expected_bytes, tensors[path] = _header(head)
            fault = f"/{path} has {size_bytes} bytes, and its header tells of {expected_bytes}"
            if expected_bytes != size_bytes:
                yield fault if expected_bytes else f"/{path} is no safetensors file", files.again
    for folder in sorted({path[: path.rfind("/") + 1] for path in files.sizes_bytes}):
        index, shards = files.loaded(folder)
        missing = [path for path in shards if path not in files.sizes_bytes]
        if index and not shards:
            yield f"/{index}: its weight_map must name the file of each weight", files.again
        elif missing:
            is_left_out = files.left_out.keys() >= set(missing)
            remedy = "Name them in `allow_patterns`." if is_left_out else files.again
            yield f" lacks {', '.join(missing)}, which {index} names", remedy


def _header(head: bytes) -> tuple[int, Collection[str]]:
    """Returns the size that a safetensors file has by its header, and its tensors; else 0."""
    try:
        length = int.from_bytes(head[:8], "little")
        header = parse_json(head[8 : 8 + length])
        header.pop("__metadata__", None)
        ends = [each["data_offsets"][1] for each in header.values()]
        return int(8 + length + max(ends, default=0)), header.keys()
    except (ValueError, LookupError, TypeError, AttributeError):
        return 0, ()


def _contradictions(
    files: FileSet, tensors: Mapping[str, Collection[str]]
) -> Iterator[tuple[str, str]]:
    """Yields where the files at the top, which engines look for by pattern, are no one model."""
    if "config.json" in files.sizes_bytes and files.parsed("config.json", dict) is None:
        yield "/config.json is no JSON object", files.again
    index, weights = files.loaded()
    top = sorted(path for path in files.sizes_bytes if "/" not in path)
    shards = dict[str, list[str]]()
    for shard in filter(None, map(_SHARD.fullmatch, top)):
        shards.setdefault(f"{shard[1]}.{shard[2]}.index.json", []).append(shard[0])
    for own_index, found in shards.items():
        stale = [path for path in found if path not in weights]
        if own_index not in top:
            remedy = "Copy it from where they come from, or save the model again."
            yield f" has shards ({named(found)}) and no {own_index}", remedy
        elif own_index == index and stale:
            remedy = "Delete what an earlier save left. If they are the newer ones, copy the index."
            yield f" has shards that {index} does not name: {', '.join(stale)}", remedy
    owners = dict[str, str]()
    for path in dict.fromkeys((*weights, *top)):
        again = {owners.setdefault(name, path) for name in tensors.get(path, ())} - {path}
        if again:
            what = f"/{path} has weights that {', '.join(sorted(again))} has too"
            yield what, "Delete the file that is a copy."
    if index and index.endswith(".safetensors.index.json"):
        listed = files.document(index)["weight_map"].keys()
        lost = sorted(name for name in listed - owners.keys() if not _MAY_BE_TIED.search(name))
        if lost:
            yield f" lacks the weights {named(lost)}, which {index} names", files.again


def _missing(files: FileSet, needs: Collection[str]) -> Iterator[tuple[str, str]]:
    paths = files.sizes_bytes.keys()
    has_weights = any(is_weights(path) or path.endswith(".index.json") for path in paths)
    if needs and not has_weights and "adapter_config.json" in paths:
        base = files.document("adapter_config.json").get("base_model_name_or_path", "not named")
        remedy = "Merge it into its base with PEFT's `merge_and_unload()`, and publish the result."
        what = f" is an adapter (adapter_config.json) without the weights of its base, {base}"
        yield what, remedy
        return
    if WEIGHTS in needs and (fault := gguf_alone(files)):
        yield fault
        return
    if CONFIG in needs and not any(map(_CONFIG.fullmatch, paths)):
        remedy = "Name the folder of a checkpoint as transformers saves it. Another form needs "
        remedy += "a model.py or an image of your own."
        yield " has no config.json", remedy
    if WEIGHTS in needs and not has_weights:
        others = [path for path in files.left_out if is_weights(path) or path.endswith(".ckpt")]
        what = f". In another form it has {named(others)}" if others else ""
        remedy = "Publish weights as safetensors, with transformers' `save_pretrained`."
        yield f" has no weights, such as model.safetensors{what}", remedy
    if TOKENIZER in needs and not _has_tokenizer(files):
        remedy = "Save it there with transformers' `AutoTokenizer`, by `save_pretrained`."
        what = " has no tokenizer, such as tokenizer.json, or vocab.json with merges.txt"
        yield what, remedy


def _has_tokenizer(files: FileSet) -> bool:
    paths = files.sizes_bytes.keys()
    folders = {path.removesuffix("vocab.json") for path in paths if path.endswith("vocab.json")}
    if any(map(_TOKENIZER.fullmatch, paths)) or paths & {f"{each}merges.txt" for each in folders}:
        return True
    configs = (files.document(each) for each in paths if each.endswith("tokenizer_config.json"))
    return any(
        "auto_map" in each or _NEEDS_NO_MERGES.match(str(each.get("tokenizer_class")))
        for each in configs
    )
