"""Writes Triton's model repository: config.pbtxt, version 1, and the requests of the warm-up.

config.pbtxt is protobuf's text format of ModelConfig:
https://github.com/triton-inference-server/common/blob/main/protobuf/model_config.proto

It keeps to Python 3.10.
"""

import json
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from containers.triton.settings import TritonSettings

INPUT: Final = "TEXT"
OUTPUT: Final = "ANSWER"

VERSION: Final = "1"
CONFIG_FILE: Final = "config.pbtxt"
# The server looks for these names.
MODEL_FILE: Final = "model.py"
WARMUP_DIRECTORY: Final = "warmup"

_WARMUP_FILE: Final = "text"
# Each copy answers it before it is ready, alone and in a full batch.
_WARMUP_TEXT: Final = b"a"


@dataclass(frozen=True)
class TextModel:
    """A model of the Python back end that takes a text and returns one.

    Each copy has a process of its own. Each GPU gets all copies if they are `on_gpu`; else the host
    does. Python finds the module `program`, with the class `TritonPythonModel`, in `program_path`.
    """

    settings: TritonSettings
    on_gpu: bool
    parameters: Mapping[str, str]
    program: str
    program_path: Path

    def write(self, repository: Path) -> None:
        directory = repository / self.settings.model_name
        (directory / VERSION).mkdir(parents=True)
        (directory / CONFIG_FILE).write_text(self.config(), encoding="utf-8")
        (directory / VERSION / MODEL_FILE).write_text(
            # Triton's process for a model does not read PYTHONPATH.
            f"import sys\n\nsys.path.insert(0, {str(self.program_path)!r})\n"
            f"from {self.program} import TritonPythonModel as TritonPythonModel\n",
            encoding="utf-8",
        )
        (directory / WARMUP_DIRECTORY).mkdir()
        # A text in a file is written as in a request: four bytes of its length, then itself.
        warmup = directory / WARMUP_DIRECTORY / _WARMUP_FILE
        warmup.write_bytes(struct.pack("<I", len(_WARMUP_TEXT)) + _WARMUP_TEXT)

    def config(self) -> str:
        return "".join(f"{line}\n" for line in self._fields())

    def _fields(self) -> Iterator[str]:
        settings, kind = self.settings, "GPU" if self.on_gpu else "CPU"
        delay = settings.max_batch_delay_microseconds
        yield f"name: {_quoted(settings.model_name)}"
        yield 'backend: "python"'
        yield f"max_batch_size: {settings.max_batch_size}"
        for field, name in (("input", INPUT), ("output", OUTPUT)):
            yield f"{field} {{ name: {_quoted(name)} data_type: TYPE_STRING dims: 1 }}"
        # No queue policy, with which a request can wait half a second beside an idle copy: see
        # `WaitForPayloadSlotAvailable` in triton-inference-server/core. The guard bounds the queue.
        yield f"dynamic_batching {{ max_queue_delay_microseconds: {delay} }}"
        yield f"instance_group {{ count: {settings.instance_count} kind: KIND_{kind} }}"
        # Otherwise an answer of earlier files could be returned.
        yield "response_cache { enable: false }"
        text = f"data_type: TYPE_STRING dims: 1 input_data_file: {_quoted(_WARMUP_FILE)}"
        inputs = f"inputs {{ key: {_quoted(INPUT)} value {{ {text} }} }}"
        for count in dict.fromkeys((1, settings.max_batch_size)):
            yield f'model_warmup {{ name: "{count} together" batch_size: {count} {inputs} }}'
        for name, value in sorted(self.parameters.items()):
            text = f"string_value: {_quoted(value)}"
            yield f"parameters {{ key: {_quoted(name)} value {{ {text} }} }}"


def _quoted(text: str) -> str:
    # Protobuf takes the escapes that JSON has, and UTF-8 as it is.
    return json.dumps(text, ensure_ascii=False)
