"""Models that people deploy, as the Hugging Face Hub has them: facts, and empty checkpoints.

`published_models.json` has each model's config.json, the names, dtypes and shapes of its tensors,
and what vLLM keeps of a token. A checkpoint written here has the sizes of the published one, and
takes no space: its files are sparse.
"""

import functools
import itertools
import json
import math
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_BYTES = {
    "F32": 4, "BF16": 2, "F16": 2, "F8_E4M3": 1, "U8": 1, "I8": 1, "I32": 4, "I64": 8,
}  # fmt: skip
_LARGEST_SHARD_BYTES = 50_000_000_000
# Files that tell the task of a checkpoint, by task.
_FILES_OF_TASKS: Mapping[str, Mapping[str, Any]] = {
    "chat": {"tokenizer_config.json": {"chat_template": "{{ messages }}"}},
    "vision": {
        "tokenizer_config.json": {"chat_template": "{{ messages }}"},
        "preprocessor_config.json": {},
    },
    "embedding": {
        "tokenizer_config.json": {},
        "modules.json": [
            {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
            {
                "idx": 1,
                "name": "1",
                "path": "1_Pooling",
                "type": "sentence_transformers.models.Pooling",
            },
        ],
    },
}


@dataclass(frozen=True)
class PublishedModel:
    """A row of the JSON file.

    The parameters are counted once, without the scales of quantisation. Names of tensors are by
    `DTYPE[SHAPE]`, and `{0-3,5}` stands for each number. Groups of layers of the cache keep keys
    and values alike, or a state: bytes of a number, by the numbers' shape.
    """

    name: str
    published: str
    task: str
    parameters: int
    stored_bytes: int
    config: Mapping[str, Any]
    tensors: Mapping[str, Sequence[str]]
    cache: Sequence[Mapping[str, Any]]
    other_files: Mapping[str, Any]

    @property
    def slug(self) -> str:
        return re.sub(r"[^a-z0-9]+", "-", self.name.partition("/")[2].lower())[:40].strip("-")

    def cache_bytes(self, tokens: int, requests: int, degree: int) -> int:
        """Returns what vLLM keeps on each GPU, in two bytes a number of keys and values.

        The heads are divided over the GPUs, and each keeps at least one.
        """
        numbers = states = 0
        for group in self.cache:
            if "state" in group:
                parts = ((map(int, s.split(" x ")), size) for s, size in group["state"].items())
                states += group["layers"] * sum(math.prod(s) * size for s, size in parts) // degree
                continue
            kept = min(tokens, group.get("window", tokens))
            if "latent" in group:
                numbers += group["layers"] * group["latent"] * kept
            else:
                heads = math.ceil(group["heads"] / degree)
                numbers += group["layers"] * 2 * heads * group["head_size"] * kept
        return (2 * numbers + states) * requests


@functools.cache
def published_models() -> Mapping[str, PublishedModel]:
    path = Path(__file__).with_suffix(".json")
    rows = json.loads(path.read_text("utf-8"))["models"]
    return {name: _model(name, row) for name, row in rows.items()}


def _model(name: str, row: Mapping[str, Any]) -> PublishedModel:
    others = dict(_FILES_OF_TASKS.get(row["task"], {"tokenizer_config.json": {}}))
    if "hf_quant_config" in row:
        others["hf_quant_config.json"] = row["hf_quant_config"]
    fields = ("published", "task", "parameters", "stored_bytes", "config", "tensors", "cache")
    return PublishedModel(name, **{each: row[each] for each in fields}, other_files=others)


def write_published(model: PublishedModel, directory: Path) -> None:
    """Writes a checkpoint with every tensor's entry in the headers, and holes for the weights."""
    directory.mkdir(parents=True)
    files = {"config.json": model.config, "tokenizer.json": {}, **model.other_files}
    shards = list(_shards(model))
    assert sum(size for *_, size in shards) == model.stored_bytes, "the facts contradict each other"
    if len(shards) == 1:
        names = ["model.safetensors"]
    else:
        total = len(shards)
        names = [f"model-{at:05}-of-{total:05}.safetensors" for at in range(1, total + 1)]
        places = {key: name for name, shard in zip(names, shards, strict=True) for key in shard[1]}
        files["model.safetensors.index.json"] = {
            "metadata": {"total_size": model.stored_bytes},
            "weight_map": places,
        }
    for name, content in files.items():
        (directory / name).write_text(json.dumps(content), "utf-8")
    for name, (entries, _, size) in zip(names, shards, strict=True):
        header = f"{{{','.join(entries)}}}".encode()
        with (directory / name).open("wb") as file:
            file.write(struct.pack("<Q", len(header)) + header)
            file.truncate(8 + len(header) + size)


def _shards(model: PublishedModel) -> Iterator[tuple[list[str], list[str], int]]:
    """Yields the entries of a file's header, the tensors' names, and the bytes of its tensors."""
    entries: list[str] = []
    keys: list[str] = []
    offset = 0
    for kind, patterns in model.tensors.items():
        dtype, _, dimensions = kind.removesuffix("]").partition("[")
        shape = [int(each) for each in dimensions.split(",") if each]
        size = math.prod(shape) * _BYTES[dtype]
        start = f'"dtype":"{dtype}","shape":[{dimensions}],"data_offsets":['
        for name in itertools.chain.from_iterable(map(_names, patterns)):
            if offset and offset + size > _LARGEST_SHARD_BYTES:
                yield entries, keys, offset
                entries, keys, offset = [], [], 0
            entries.append(f'"{name}":{{{start}{offset},{offset + size}]}}')
            keys.append(name)
            offset += size
    yield entries, keys, offset


def _names(pattern: str) -> Iterator[str]:
    texts = re.split(r"\{([^}]*)\}", pattern)
    choices = [_numbers(text) if at % 2 else [text] for at, text in enumerate(texts)]
    return map("".join, itertools.product(*choices))


def _numbers(text: str) -> list[str]:
    ranges = (each.partition("-") for each in text.split(","))
    return [
        str(number)
        for first, _, last in ranges
        for number in range(int(first), int(last or first) + 1)
    ]
