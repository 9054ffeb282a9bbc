"""The model of the comparison in Triton's Python back end: `generate` of transformers per request.

AWS's example of T5 on Triton has this form: it loops over the requests of a batch, and calls
`generate` for each. For speed this model uses evaluation mode, inference mode and a fast tokenizer.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import triton_python_backend_utils as pb_utils

from containers.triton.repository import INPUT, OUTPUT


class TritonPythonModel:
    """Triton calls its methods by these names."""

    def initialize(self, args: dict[str, str]) -> None:
        parameters = json.loads(args["model_config"])["parameters"]
        settings = {name: each["string_value"] for name, each in parameters.items()}
        # Behind the server's own packages, whose NumPy the back end needs.
        sys.path.append(settings["packages"])
        import torch
        from tokenizers import Tokenizer
        from transformers import T5ForConditionalGeneration

        directory = Path(settings["model_dir"])
        torch.set_num_threads(int(settings["threads"]))
        self._torch = torch
        self._tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
        self._model = T5ForConditionalGeneration.from_pretrained(
            directory, dtype=torch.float32
        ).eval()
        self._max_new_tokens = int(settings["max_new_tokens"])

    def execute(self, requests: Sequence[Any]) -> list[Any]:
        return [self._respond(request) for request in requests]

    def _respond(self, request: Any) -> Any:
        texts = pb_utils.get_input_tensor_by_name(request, INPUT).as_numpy().reshape(-1)
        found = np.array([[self._generate(text.decode())] for text in texts], dtype=object)
        return pb_utils.InferenceResponse([pb_utils.Tensor(OUTPUT, found)])

    def _generate(self, text: str) -> bytes:
        input_ids = self._torch.tensor([self._tokenizer.encode(text).ids])
        with self._torch.inference_mode():
            [tokens] = self._model.generate(
                input_ids, do_sample=False, max_new_tokens=self._max_new_tokens
            )
        answer: str = self._tokenizer.decode(tokens.tolist())
        return answer.encode()
