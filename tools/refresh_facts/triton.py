"""Writes slipway/facts/triton/model_config.json: `python -m tools.refresh_facts.triton WHEELS`.

WHEELS is a directory with the wheels of tritonclient on PyPI, one for each release of AWS's image
(`CLIENTS`): `pip download --no-deps tritonclient==VERSION`. Each has the descriptor of ModelConfig,
which is all that is read: names and types of fields, and no text. Nothing in them is run.
"""

import ast
import datetime
import sys
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)

from tools.refresh_facts.tables import FACTS, SourceError, render, run

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
ROOT = "ModelConfig"
# In the proto file, and in no message below ModelConfig.
_TYPES = {
    FieldDescriptorProto.TYPE_BOOL: "bool",
    FieldDescriptorProto.TYPE_DOUBLE: "double",
    FieldDescriptorProto.TYPE_FLOAT: "float",
    FieldDescriptorProto.TYPE_INT32: "int32",
    FieldDescriptorProto.TYPE_INT64: "int64",
    FieldDescriptorProto.TYPE_STRING: "string",
    FieldDescriptorProto.TYPE_UINT32: "uint32",
    FieldDescriptorProto.TYPE_UINT64: "uint64",
}


def descriptor(wheel: Path) -> FileDescriptorProto:
    """Returns the descriptor that a client's generated module holds as bytes.

    Raises:
        SourceError: the wheel is missing, or has another form.
    """
    try:
        with zipfile.ZipFile(wheel) as archive:
            # Older wheels have their files below a directory of data.
            [name] = [name for name in archive.namelist() if name.endswith(DESCRIPTOR)]
            module = ast.parse(archive.read(name))
    except (OSError, ValueError):
        raise SourceError(f"{wheel} is no wheel with {DESCRIPTOR}") from None
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "AddSerializedFile":
            return FileDescriptorProto.FromString(ast.literal_eval(node.args[0]))
    raise SourceError(f"{wheel} holds its descriptor in another way now")


def tables(file: FileDescriptorProto) -> tuple[dict[str, dict[str, str]], dict[str, list[str]]]:
    """Returns the fields of each message, and the values of each enumeration."""
    messages: dict[str, dict[str, str]] = {}
    enums = {enum.name: [value.name for value in enum.value] for enum in file.enum_type}
    for name, message in _nested("", file.message_type):
        messages[name] = {
            field.name: _type(field, message, file.package) for field in message.field
        }
        for enum in message.enum_type:
            enums[f"{name}.{enum.name}"] = [value.name for value in enum.value]
    return messages, enums


def _nested(prefix: str, messages: Any) -> Iterator[tuple[str, DescriptorProto]]:
    for message in messages:
        yield prefix + message.name, message
        yield from _nested(f"{prefix}{message.name}.", message.nested_type)


def _type(field: FieldDescriptorProto, message: DescriptorProto, package: str) -> str:
    """Returns a field's type; a choice of one among several fields stands before it."""
    name = _TYPES.get(field.type) or field.type_name.removeprefix(f".{package}.")
    if field.label == FieldDescriptorProto.LABEL_REPEATED:
        return f"repeated {name}"
    if field.HasField("oneof_index") and not field.proto3_optional:
        return f"{message.oneof_decl[field.oneof_index].name}? {name}"
    return name


def table(wheels: Path, as_of: datetime.date) -> str:
    """Returns the table's text.

    Raises:
        SourceError: a wheel is missing or has changed its form.
    """
    releases = {
        release: tables(descriptor(wheels / f"tritonclient-{version}-py3-none-any.whl"))
        for release, version in CLIENTS.items()
    }
    messages, enums = releases[max(releases)]
    reached = _reached(messages)
    since = {
        f"{message}.{field}": release
        for message in sorted(reached)
        for field in messages[message]
        if (release := _since(releases, message, field)) != min(releases)
    }
    return render(
        {
            "as_of": as_of.isoformat(),
            "sources": [
                "tritonclient "
                + ", ".join(CLIENTS.values())
                + " of PyPI, the descriptor of model_config.proto in each: names and types of "
                "fields; `since` has the first release of AWS's image with a later field",
            ],
            "messages": {name: messages[name] for name in sorted(reached)},
            "enums": {
                name: values
                for name, values in sorted(enums.items())
                if any(name == _plain(kind) for each in reached for kind in messages[each].values())
            },
            "since": since,
        },
        levels=2,
    )


def _reached(messages: Mapping[str, Mapping[str, str]]) -> set[str]:
    reached, waiting = {ROOT}, [ROOT]
    while waiting:
        for kind in messages[waiting.pop()].values():
            name = _plain(kind)
            if name in messages and name not in reached:
                reached.add(name)
                waiting.append(name)
    return reached


def _plain(kind: str) -> str:
    return kind.rpartition(" ")[2]


def _since(releases: Mapping[str, tuple[Any, Any]], message: str, field: str) -> str:
    return min(name for name, (known, _) in releases.items() if field in known.get(message, {}))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(run(PATH, lambda as_of: table(Path(sys.argv[1]), as_of)))
