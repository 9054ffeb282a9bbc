"""Files of checkpoints that are whole."""

from collections.abc import Mapping, Sequence

from tests.support import published


def safetensors(content: bytes) -> bytes:
    """Returns a safetensors file with one tensor of these bytes."""
    return published.safetensors({"weight": ("U8", [len(content)])}, content)


def tensors(shapes: Mapping[str, Sequence[int]]) -> bytes:
    """Returns a safetensors file with zeros for weights of two bytes."""
    return published.safetensors({name: ("BF16", shape) for name, shape in shapes.items()})
