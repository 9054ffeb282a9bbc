"""Facts about a Hugging Face checkpoint in a folder, so that `slipway init` need not ask for them.

Only config.json and the headers of the safetensors files are read: never a weight, never a pickle.
"""

import json
import math
import struct
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from slipway.codes.code import Code
from slipway.config.sections.model import Family
from slipway.errors import UserError

_CONFIG, _WEIGHTS, _INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
# safetensors' own limit for the header.
_LONGEST_HEADER_BYTES = 100_000_000
# Each field of `model`, and the names that the families have for it.
_SHAPE_NAMES: Mapping[str, tuple[str, ...]] = {
    "layers": ("num_decoder_layers", "num_hidden_layers", "n_layer", "n_layers", "num_layers"),
    "hidden_size": ("hidden_size", "n_embd", "d_model", "dim"),
    "attention_heads": ("num_attention_heads", "n_head", "num_heads", "n_heads"),
    "key_value_heads": ("num_key_value_heads",),
    "head_size": ("head_dim", "d_kv"),
}


@dataclass(frozen=True)
class CheckpointFacts:
    """What a checkpoint's files say about the network.

    Attributes:
        family: architecture; None where the config language has no name for it.
        parameters: number of weights; None without safetensors files.
        shape: further fields of the section `model`.
    """

    family: str | None = None
    parameters: int | None = None
    shape: Mapping[str, int] = field(default_factory=dict)


def read_checkpoint(directory: Path, shown_as: str) -> CheckpointFacts:
    """Returns the facts of a checkpoint; empty facts where the folder holds no config.json.

    Args:
        directory: the checkpoint.
        shown_as: its name in messages.

    Raises:
        UserError: a file is not what its name says.
    """
    if not (directory / _CONFIG).is_file():
        return CheckpointFacts()
    config = _document(directory / _CONFIG, shown_as)
    family = str(config.get("model_type")).replace("-", "_")
    known = family in typing.get_args(Family) and family != "other"
    return CheckpointFacts(
        family if known else None, _parameters(directory, shown_as), _shape(config)
    )


def _shape(config: Mapping[str, Any]) -> dict[str, int]:
    found: dict[str, int] = {}
    for name, aliases in _SHAPE_NAMES.items():
        values = (config.get(alias) for alias in aliases)
        value = next((value for value in values if isinstance(value, int)), None)
        if value is not None:
            found[name] = value
    # Both are only written where they differ from what follows from the other fields.
    heads, width = found.get("attention_heads"), found.get("hidden_size")
    if found.get("key_value_heads") == heads:
        found.pop("key_value_heads", None)
    if heads and width and found.get("head_size") == width // heads:
        found.pop("head_size", None)
    return found


def _parameters(directory: Path, shown_as: str) -> int | None:
    """Counts the weights of every tensor; None without safetensors files."""
    if (directory / _WEIGHTS).is_file():
        names = {_WEIGHTS}
    elif (directory / _INDEX).is_file():
        index = _document(directory / _INDEX, shown_as)
        names = {Path(str(name)).name for name in index.get("weight_map", {}).values()}
    else:
        return None
    return sum(
        math.prod(map(int, tensor["shape"]))
        for name in sorted(names)
        for key, tensor in _tensors(directory / name, f"{shown_as}/{name}")
        if not _is_buffer(key, tensor)
    )


def _is_buffer(name: str, tensor: Mapping[str, Any]) -> bool:
    # Old checkpoints also have positions, and in GPT-2 the causal mask (`h.0.attn.bias`, of four
    # dimensions): 12 million numbers that are no weights.
    is_mask = name.endswith(("attn.bias", "attn.masked_bias")) and len(tensor["shape"]) in (0, 4)
    return is_mask or tensor["dtype"] in ("I64", "BOOL")


def _tensors(path: Path, shown_as: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yields name and header entry of each tensor of a safetensors file."""
    try:
        with path.open("rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            if length > _LONGEST_HEADER_BYTES:
                raise ValueError("the header is too long")
            header = json.loads(file.read(length))
        entries = [(name, entry) for name, entry in header.items() if name != "__metadata__"]
        for _, entry in entries:
            math.prod(map(int, entry["shape"]))
            str(entry["dtype"])
    except (OSError, struct.error, ValueError, TypeError, KeyError, AttributeError) as error:
        raise _unreadable(shown_as, "safetensors file", error) from None
    yield from entries


def _document(path: Path, shown_as: str) -> Mapping[str, Any]:
    shown = f"{shown_as}/{path.name}"
    try:
        document = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise _unreadable(shown, "JSON document", error) from None
    if not isinstance(document, dict):
        raise _unreadable(shown, "JSON document", TypeError("it is no object"))
    return document


def _unreadable(shown: str, kind: str, error: Exception) -> UserError:
    return UserError.of(
        Code.FILE_UNREADABLE,
        f"{shown} is not a readable {kind}: {error}",
        "Copy the checkpoint again; Git LFS may have left a pointer in place of a file.",
    )
