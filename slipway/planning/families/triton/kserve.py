"""Texts as Triton's HTTP interface has them: KServe's protocol v2, as JSON or with binary tensors.

Requests and answers have one form: an object with `inputs` or `outputs`. In the binary form, the
object comes first. Its length is in the content type, and each binary tensor says its own size.
A tensor of texts is, for each text, four bytes with the length (little-endian) and the text.

Sources: KServe's predict protocol v2; docs/protocol/extension_binary_data.md and
src/sagemaker_server.cc of triton-inference-server/server.
"""

import json
import re
import struct
from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal

from slipway.planning.texts import NotTextsError, TextProtocol, TextsRequest

JSON: Final = "application/json"
BINARY: Final = "application/vnd.sagemaker-triton.binary+json"
"""The content type without its parameter, which follows from the request."""

INPUT: Final = "TEXT"
OUTPUT: Final = "ANSWER"
"""Names of the tensors of Slipway's model of texts."""

Direction = Literal["inputs", "outputs"]

_BINARY_TYPE = re.compile(re.escape(BINARY) + r"\s*;\s*json-header-size=([0-9]{1,10})")
_LENGTH = struct.Struct("<I")


class KServeError(NotTextsError):
    """A body is not in the protocol's form; the message says why."""


class KServeTexts(TextProtocol):
    def __init__(self) -> None:
        super().__init__((JSON, BINARY))

    def request(self, texts: Sequence[str], content_type: str) -> TextsRequest:
        """Returns the request; with the binary content type, its answer is binary as well."""
        binary = content_type == BINARY
        wanted = [{"name": OUTPUT, "parameters": {"binary_data": True}}] if binary else []
        return TextsRequest(*encode("inputs", INPUT, texts, binary=binary, outputs=wanted))

    def answers(self, body: bytes, content_type: str) -> list[str]:
        return decode("outputs", OUTPUT, body, content_type)


def encode(
    direction: Direction,
    name: str,
    texts: Sequence[str],
    *,
    binary: bool,
    outputs: Sequence[dict[str, Any]] = (),
) -> tuple[bytes, str]:
    """Returns body and content type of a request or answer with one tensor of texts.

    Each text is a row. Binary texts follow the JSON. A request may ask for outputs; without any it
    gets all, as JSON.
    """
    data = b"".join(_LENGTH.pack(len(raw)) + raw for raw in (text.encode() for text in texts))
    tensor: dict[str, Any] = {"name": name, "shape": [len(texts), 1], "datatype": "BYTES"}
    if binary:
        tensor["parameters"] = {"binary_data_size": len(data)}
    else:
        tensor["data"] = list(texts)
    document = {direction: [tensor], **({"outputs": list(outputs)} if outputs else {})}
    header = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
    if not binary:
        return header, JSON
    return header + data, f"{BINARY};json-header-size={len(header)}"


def decode(direction: Direction, name: str, body: bytes, content_type: str) -> list[str]:
    """Returns the texts of a tensor in a request or answer: JSON, or JSON and binary tensors.

    Raises:
        KServeError: the body is not in the protocol's form, or has no texts of that name.
    """
    length = len(body)
    if content_type.startswith(BINARY):
        match = _BINARY_TYPE.fullmatch(content_type.strip())
        if match is None or int(match[1]) > length:
            raise KServeError(f"the content type {content_type!r} has no usable json-header-size")
        length = int(match[1])
    binary = body[length:]
    for tensor in _tensors(direction, body[:length]):
        size = _binary_size(tensor)
        if tensor.get("name") != name:
            binary = binary[size or 0 :]
            continue
        if tensor.get("datatype") != "BYTES":
            raise KServeError(f"the tensor {name} has no texts, but {tensor.get('datatype')}")
        if size is not None:
            return list(_texts(name, binary, size))
        data = tensor.get("data")
        if not isinstance(data, list) or not all(isinstance(text, str) for text in data):
            raise KServeError(f"the tensor {name} has no list of texts")
        return data
    raise KServeError(f"there is no tensor {name} in `{direction}`")


def _tensors(direction: Direction, header: bytes) -> Iterator[dict[str, Any]]:
    try:
        tensors = json.loads(header)[direction]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise KServeError(f"the body is no JSON object with `{direction}`") from None
    if not isinstance(tensors, list) or not all(isinstance(each, dict) for each in tensors):
        raise KServeError(f"`{direction}` is no list of tensors")
    yield from tensors


def _binary_size(tensor: dict[str, Any]) -> int | None:
    parameters = tensor.get("parameters")
    size = parameters.get("binary_data_size") if isinstance(parameters, dict) else None
    if size is not None and (not isinstance(size, int) or size < 0):
        raise KServeError(f"binary_data_size is {size!r}")
    return size


def _texts(name: str, binary: bytes, size: int) -> Iterator[str]:
    at = 0
    while at < size:
        begin = at + _LENGTH.size
        end = begin + _LENGTH.unpack_from(binary, at)[0] if begin <= len(binary) else size + 1
        if end > min(size, len(binary)):
            raise KServeError(f"the tensor {name} ends within a text")
        try:
            yield binary[begin:end].decode()
        except UnicodeDecodeError:
            raise KServeError(f"the tensor {name} has bytes that are not UTF-8") from None
        at = end
