"""Writes Triton's model repository: config.pbtxt, version 1, and the requests of the warm-up.

config.pbtxt is protobuf's text format of ModelConfig:
https://github.com/triton-inference-server/common/blob/main/protobuf/model_config.proto

It keeps to Python 3.10.
"""

import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

INPUT: Final = "TEXT"
OUTPUT: Final = "ANSWER"

VERSION: Final = "1"
CONFIG_FILE: Final = "config.pbtxt"
# The server looks for these names.
MODEL_FILE: Final = "model.py"
WARMUP_DIRECTORY: Final = "warmup"

_WARMUP_FILE: Final = "text"

_INDENT: Final = "  "

# A field's value: text in quotes, a name of an enumeration, a message, or several of one field.
Value: TypeAlias = "str | int | bool | Name | Message | Sequence[Value]"


@dataclass(frozen=True)
class Name:
    """A value of an enumeration, which is written without quotes."""

    text: str


@dataclass(frozen=True)
class Message:
    """A message: fields in the order in which they are written."""

    fields: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True)
class TextModel:
    """A model of the Python back end that takes a text and returns one.

    Attributes:
        name: of the model, and of its directory.
        max_batch_size: most texts in a batch.
        instance_count: copies, each with a process of its own.
        on_gpu: whether each GPU gets that many copies; else the host does.
        max_batch_delay_microseconds: longest wait for others; 0 takes the requests that are there.
        input_name: of the texts.
        output_name: of the answers.
        parameters: what the model reads, by name.
        program: the module with the class `TritonPythonModel`.
        program_path: directory in which Python finds that module.
        warmup_text: a text that each copy answers before it is ready, alone and in a full batch.
    """

    name: str
    max_batch_size: int
    instance_count: int
    on_gpu: bool
    max_batch_delay_microseconds: int
    input_name: str
    output_name: str
    parameters: Mapping[str, str]
    program: str
    program_path: Path
    warmup_text: str

    def write(self, repository: Path) -> None:
        """Writes the model's directory into a repository."""
        directory = repository / self.name
        (directory / VERSION).mkdir(parents=True)
        (directory / CONFIG_FILE).write_text(self.config(), encoding="utf-8")
        (directory / VERSION / MODEL_FILE).write_text(
            # Triton's process for a model does not read PYTHONPATH.
            f"import sys\n\nsys.path.insert(0, {str(self.program_path)!r})\n"
            f"from {self.program} import TritonPythonModel as TritonPythonModel\n",
            encoding="utf-8",
        )
        (directory / WARMUP_DIRECTORY).mkdir()
        text = self.warmup_text.encode()
        # A text in a file is written as in a request: four bytes of its length, then itself.
        warmup = directory / WARMUP_DIRECTORY / _WARMUP_FILE
        warmup.write_bytes(struct.pack("<I", len(text)) + text)

    def config(self) -> str:
        """Returns config.pbtxt."""
        return render(
            Message(
                {
                    "name": self.name,
                    "backend": "python",
                    "max_batch_size": self.max_batch_size,
                    "input": [_texts(self.input_name)],
                    "output": [_texts(self.output_name)],
                    # No queue policy, with which a request can wait half a second beside an idle
                    # copy: see `WaitForPayloadSlotAvailable` in triton-inference-server/core. The
                    # guard bounds the queue.
                    "dynamic_batching": Message(
                        {"max_queue_delay_microseconds": self.max_batch_delay_microseconds}
                    ),
                    "instance_group": [
                        Message(
                            {
                                "count": self.instance_count,
                                "kind": Name("KIND_GPU" if self.on_gpu else "KIND_CPU"),
                            }
                        )
                    ],
                    # Otherwise an answer of earlier files could be returned.
                    "response_cache": Message({"enable": False}),
                    "model_warmup": [
                        self._warmup(count) for count in dict.fromkeys((1, self.max_batch_size))
                    ],
                    "parameters": [
                        Message({"key": name, "value": Message({"string_value": value})})
                        for name, value in sorted(self.parameters.items())
                    ],
                }
            )
        )

    def _warmup(self, texts: int) -> Message:
        value = Message(
            {"data_type": Name("TYPE_STRING"), "dims": 1, "input_data_file": _WARMUP_FILE}
        )
        return Message(
            {
                "name": f"{texts} together",
                "batch_size": texts,
                "inputs": Message({"key": self.input_name, "value": value}),
            }
        )


def render(message: Message) -> str:
    """Returns a message in protobuf's text format."""
    return "".join(f"{line}\n" for line in _lines(message, ""))


def _texts(name: str) -> Message:
    return Message({"name": name, "data_type": Name("TYPE_STRING"), "dims": 1})


def _lines(message: Message, indent: str) -> Iterator[str]:
    for name, value in message.fields.items():
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, Message):
                yield f"{indent}{name} {{"
                yield from _lines(each, indent + _INDENT)
                yield f"{indent}}}"
            else:
                yield f"{indent}{name}: {_scalar(each)}"


def _scalar(value: Value) -> str:
    if isinstance(value, Name):
        return value.text
    if isinstance(value, bool):
        return str(value).lower()
    # Protobuf takes the escapes that JSON has, and UTF-8 as it is.
    return json.dumps(value, ensure_ascii=False)
