"""Files of checkpoints that are whole."""

import json
import math
import struct
from collections.abc import Mapping, Sequence


def safetensors(content: bytes) -> bytes:
    """Returns a safetensors file with one tensor of these bytes."""
    tensor = {"dtype": "U8", "shape": [len(content)], "data_offsets": [0, len(content)]}
    header = json.dumps({"weight": tensor, "__metadata__": {"format": "pt"}}).encode()
    return struct.pack("<Q", len(header)) + header + content


def tensors(shapes: Mapping[str, Sequence[int]]) -> bytes:
    """Returns a safetensors file with zeros for weights of two bytes."""
    header, end = {}, 0
    for name, shape in shapes.items():
        begin, end = end, end + 2 * math.prod(shape)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + bytes(end)
