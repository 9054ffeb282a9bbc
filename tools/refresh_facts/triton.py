"""Writes slipway/facts/triton/model_config.json: `python -m tools.refresh_facts.triton WHEELS`.

WHEELS is a directory with the wheels of tritonclient on PyPI, one for each release of AWS's image
(`CLIENTS`): `pip download --no-deps tritonclient==VERSION`. Each has the descriptor of ModelConfig,
which is all that is read: names and types of fields, and no text. Nothing in them is run.
"""

import ast
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import FieldDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool

from tools.refresh_facts.tables import FACTS, SourceError, run

PATH = FACTS / "triton" / "model_config.json"
DESCRIPTOR = "tritonclient/grpc/model_config_pb2.py"
# Release of the container -> version of the server and of its client (NVIDIA's release notes).
CLIENTS = {
    "23.12": "2.41.0",
    "24.01": "2.42.0",
    "24.03": "2.44.0",
    "24.05": "2.46.0",
    "24.09": "2.50.0",
    "25.04": "2.57.0",
    "25.09": "2.61.0",
    "26.05": "2.69.0",
}


def descriptor(wheel: Path) -> Descriptor:
    """Returns the descriptor of ModelConfig, which a client's generated module holds as bytes."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            # Older wheels have their files below a directory of data.
            [name] = [name for name in archive.namelist() if name.endswith(DESCRIPTOR)]
            module = ast.parse(archive.read(name))
    except (OSError, ValueError):
        raise SourceError(f"{wheel} is no wheel with {DESCRIPTOR}") from None
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "AddSerializedFile":
            file = DescriptorPool().AddSerializedFile(ast.literal_eval(node.args[0]))
            return file.message_types_by_name["ModelConfig"]
    raise SourceError(f"{wheel} holds its descriptor in another way now")


def tables(root: Descriptor) -> tuple[dict[str, dict[str, str]], dict[str, list[str]]]:
    """Returns the fields of each message, and the values of each enumeration, that it reaches."""
    messages: dict[str, dict[str, str]] = {}
    enums: dict[str, list[str]] = {}
    waiting = [root]
    while waiting:
        message = waiting.pop()
        messages[_name(message)] = {field.name: _type(field) for field in message.fields}
        for field in message.fields:
            if field.message_type and _name(field.message_type) not in messages:
                waiting.append(field.message_type)
            if field.enum_type:
                enums[_name(field.enum_type)] = [value.name for value in field.enum_type.values]
    return messages, enums


def _name(described: Descriptor | EnumDescriptor) -> str:
    name: str = described.full_name
    return name.removeprefix(f"{described.file.package}.")


def _type(field: FieldDescriptor) -> str:
    """Returns a field's type; a choice of one among several fields stands before it."""
    reached = field.message_type or field.enum_type
    kind = FieldDescriptorProto.Type.Name(field.type).removeprefix("TYPE_").lower()
    name = _name(reached) if reached else kind
    if field.is_repeated:
        return f"repeated {name}"
    choice = field.containing_oneof
    # The compiler puts a field that may be absent into a choice of its own, `_FIELD`.
    return name if choice is None or choice.name.startswith("_") else f"{choice.name}? {name}"


def table(wheels: Path) -> Mapping[str, Any]:
    releases = {
        release: tables(descriptor(wheels / f"tritonclient-{version}-py3-none-any.whl"))
        for release, version in CLIENTS.items()
    }
    messages, enums = releases[max(releases)]
    since = {
        f"{message}.{field}": release
        for message, fields in sorted(messages.items())
        for field in fields
        if (release := _since(releases, message, field)) != min(releases)
    }
    source = (
        f"tritonclient {', '.join(CLIENTS.values())} of PyPI, the descriptor of model_config.proto "
        "in each: names and types of fields; `since` has the first release of AWS's image with a "
        "later field"
    )
    return {
        "sources": [source],
        "messages": dict(sorted(messages.items())),
        "enums": dict(sorted(enums.items())),
        "since": since,
    }


def _since(releases: Mapping[str, tuple[Any, Any]], message: str, field: str) -> str:
    return min(name for name, (known, _) in releases.items() if field in known.get(message, {}))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(run(PATH, lambda: table(Path(sys.argv[1])), levels=2))
