"""The script that DJL Serving calls: the container's own session and decode loop, not its server.

The computing code is imported from containers.tensorrt, so that only the servers differ. It is a
typical custom script: the requests of a batch are decoded together, and the batch ends with its
longest answer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from djl_python import Input, Output  # type: ignore[import-not-found]
from tokenizers import Tokenizer

from containers.tensorrt.generation import Prompt, generate
from containers.tensorrt.model_directory import read_config
from containers.tensorrt.runtimes.onnx_runtime import OnnxRuntimeSession


class Generator:
    def __init__(self, properties: Mapping[str, str]) -> None:
        directory = Path(properties["model_id"])
        self._config = read_config(directory)
        self._session = OnnxRuntimeSession(
            directory, self._config, intra_op_threads=int(properties["intra_op_threads"])
        )
        self._tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))

    # Any: JSON.
    def answer(self, requests: Sequence[Mapping[str, Any]]) -> list[str]:
        prompts = [
            Prompt(
                tuple(self._tokenizer.encode(request["inputs"]).ids),
                request["parameters"]["max_new_tokens"],
            )
            for request in requests
        ]
        found = generate(self._session, prompts, eos_token_ids=self._config.eos_token_ids)
        return [self._tokenizer.decode(list(tokens)) for [tokens] in found]


_generator: Generator | None = None


def handle(inputs: Input) -> Output | None:
    """Answers a call; returns None for the empty call that loads the model."""
    global _generator
    if _generator is None:
        _generator = Generator(inputs.get_properties())
    if inputs.is_empty():
        return None
    requests = [item.get_as_json() for item in inputs.get_batches()]
    output = Output(200, "OK")
    for index, text in enumerate(_generator.answer(requests)):
        body = json.dumps([{"generated_text": text}]).encode()
        output.add(body, key="data", batch_index=index if inputs.is_batch() else None)
    output.add_property("Content-Type", "application/json")
    return output
