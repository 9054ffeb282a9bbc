"""The table of config.pbtxt's fields, made of clients as PyPI has them."""

import json
import zipfile
from pathlib import Path

import pytest
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto

from tools.refresh_facts import triton
from tools.refresh_facts.tables import SourceError

TYPES = FieldDescriptorProto


def field(message, name: str, kind: int, type_name: str | None = None, *, repeated: bool = False):
    label = TYPES.LABEL_REPEATED if repeated else TYPES.LABEL_OPTIONAL
    return message.field.add(
        name=name, number=len(message.field) + 1, type=kind, type_name=type_name, label=label
    )


def descriptor(*, with_later_field: bool) -> FileDescriptorProto:
    file = FileDescriptorProto(name="model_config.proto", package="inference")
    file.enum_type.add(name="DataType").value.add(name="TYPE_FP32", number=1)
    file.enum_type.add(name="NotReached").value.add(name="A", number=1)
    config = file.message_type.add(name="ModelConfig")
    field(config, "name", TYPES.TYPE_STRING)
    field(config, "input", TYPES.TYPE_MESSAGE, ".inference.ModelInput", repeated=True)
    config.oneof_decl.add(name="scheduling_choice")
    choice = field(config, "batching", TYPES.TYPE_MESSAGE, ".inference.ModelConfig.Batching")
    choice.oneof_index = 0
    field(config.nested_type.add(name="Batching"), "delay", TYPES.TYPE_UINT64)
    tensor = file.message_type.add(name="ModelInput")
    field(tensor, "data_type", TYPES.TYPE_ENUM, ".inference.DataType")
    if with_later_field:
        field(tensor, "optional", TYPES.TYPE_BOOL)
    field(file.message_type.add(name="Unrelated"), "x", TYPES.TYPE_BOOL)
    return file


def write_wheels(folder: Path, *, folder_in_wheel: str = "") -> None:
    for release, version in triton.CLIENTS.items():
        content = descriptor(with_later_field=release >= "25.04").SerializeToString()
        module = f"pool.AddSerializedFile({content!r})\n"
        wheel = folder / f"tritonclient-{version}-py3-none-any.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.writestr(folder_in_wheel + triton.DESCRIPTOR, module)


@pytest.mark.parametrize("folder_in_wheel", ["", "tritonclient.data/purelib/"])
def test_the_table_has_every_field_that_a_config_reaches(tmp_path, folder_in_wheel):
    write_wheels(tmp_path, folder_in_wheel=folder_in_wheel)
    found = triton.table(tmp_path)
    assert found["messages"] == {
        "ModelConfig": {
            "name": "string",
            "input": "repeated ModelInput",
            "batching": "scheduling_choice? ModelConfig.Batching",
        },
        "ModelConfig.Batching": {"delay": "uint64"},
        "ModelInput": {"data_type": "DataType", "optional": "bool"},
    }
    assert found["enums"] == {"DataType": ["TYPE_FP32"]}
    assert found["since"] == {"ModelInput.optional": "25.04"}


def test_a_wheel_that_is_missing_or_of_another_form_is_named(tmp_path):
    with pytest.raises(SourceError, match=r"tritonclient-2\.41\.0-py3-none-any\.whl is no wheel"):
        triton.table(tmp_path)
    write_wheels(tmp_path)
    [wheel] = tmp_path.glob("tritonclient-2.41.0-*")
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(triton.DESCRIPTOR, "pool = None\n")
    with pytest.raises(SourceError, match="holds its descriptor in another way now"):
        triton.table(tmp_path)


def test_the_committed_table_has_the_fields_of_this_form():
    found = json.loads(triton.PATH.read_text("utf-8"))
    assert set(found) == {"as_of", "sources", "messages", "enums", "since"}
    assert found["messages"]["ModelConfig"]["max_batch_size"] == "int32"
