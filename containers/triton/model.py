"""What Triton's Python back end loads: texts in, texts out.

Triton hands over the requests of a batch together. A request that cannot be answered gets an error
of its own; the others of its batch are answered all the same.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import triton_python_backend_utils as pb_utils

from containers.serving.errors import InvalidRequestError
from containers.tensorrt.tokenization import PromptTokenizer
from containers.triton.decoding import TokenIds, answers
from containers.triton.onnx_session import OnnxSequenceSession

INPUT: Final = "TEXT"
OUTPUT: Final = "ANSWER"


class TritonPythonModel:
    """A sequence-to-sequence model; Triton calls its methods by these names."""

    def initialize(self, args: dict[str, str]) -> None:
        """Loads the graphs and the tokenizer.

        Args:
            args: Triton's: the repository, the version, and config.pbtxt as JSON.
        """
        config = json.loads(args["model_config"])
        settings = {name: each["string_value"] for name, each in config["parameters"].items()}
        directory = Path(args["model_repository"], args["model_version"])
        self._max_input_tokens = int(settings["max_input_tokens"])
        self._max_new_tokens = int(settings["max_new_tokens"])
        self._start_token_id = int(settings["start_token_id"])
        self._end_token_ids = frozenset(map(int, settings["end_token_ids"].split(",")))
        self._tokenizer = PromptTokenizer.read(directory / "tokenizer.json")
        self._session = OnnxSequenceSession(directory, threads=int(settings["threads"]))

    def execute(self, requests: Sequence[Any]) -> list[Any]:
        """Returns a response for each request, in order."""
        prompts: list[list[TokenIds] | str] = [self._prompts(request) for request in requests]
        rows = [prompt for each in prompts if not isinstance(each, str) for prompt in each]
        texts = iter(self._answers(rows))
        responses = []
        for each in prompts:
            if isinstance(each, str):
                # Triton answers 400 to an invalid argument, and 500 to any other error.
                problem = pb_utils.TritonError(each, pb_utils.TritonError.INVALID_ARG)
                responses.append(pb_utils.InferenceResponse(error=problem))
                continue
            found = np.array([[next(texts)] for _ in each], dtype=object)
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor(OUTPUT, found)]))
        return responses

    def _prompts(self, request: Any) -> "list[TokenIds] | str":
        """Returns the tokens of each text, or the problem with the request."""
        texts = pb_utils.get_input_tensor_by_name(request, INPUT).as_numpy().reshape(-1)
        try:
            decoded = [text.decode() for text in texts]
        except UnicodeDecodeError as error:
            return f"{INPUT} is not UTF-8: byte {error.start} of a text"
        try:
            return list(self._tokenizer.encode(decoded, max_tokens=self._max_input_tokens))
        except InvalidRequestError as error:
            return str(error)

    def _answers(self, rows: Sequence[TokenIds]) -> list[bytes]:
        if not rows:
            return []
        found = answers(
            self._session,
            rows,
            max_new_tokens=self._max_new_tokens,
            start_token_id=self._start_token_id,
            end_token_ids=self._end_token_ids,
        )
        return [self._tokenizer.decode(list(each)).encode() for each in found]
