"""What Triton's Python back end loads: texts in, texts out.

Triton hands over the requests of a batch together. A request that cannot be answered gets an error
of its own; the others of its batch are answered all the same. This module keeps to Python 3.10.
"""

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import triton_python_backend_utils as pb_utils

from containers.serving.errors import InvalidRequestError
from containers.serving.exit_codes import EXIT_OPERATOR_PROBLEM
from containers.serving.logs import configure_logging, log_error, log_info
from containers.serving.model_files import TOKENIZER_FILE
from containers.serving.predictor import ModelLostError
from containers.tensorrt.tokenization import PromptTokenizer
from containers.triton.decoding import TokenIds, answers
from containers.triton.model_directory import read_config
from containers.triton.repository import INPUT, OUTPUT
from containers.triton.server_process import hold_connection
from containers.triton.sessions import SessionLimits, open_session

# No token of a real vocabulary has as many. A tokenizer takes seconds for megabytes, and the
# requests of the other clients would wait for it.
_MOST_TOKEN_BYTES: Final = 64


class TritonPythonModel:
    """A sequence-to-sequence model; Triton calls its methods by these names."""

    def initialize(self, args: dict[str, str]) -> None:
        """Loads the graphs and the tokenizer; Triton passes config.pbtxt and the device."""
        # Each copy is a process of its own, whose log is the server's.
        configure_logging("INFO", sys.stdout)
        config = json.loads(args["model_config"])
        settings = {name: each["string_value"] for name, each in config["parameters"].items()}
        directory = Path(settings["model_dir"])
        model = read_config(directory)
        self._max_input_tokens = int(settings["max_input_tokens"])
        self._max_new_tokens = int(settings["max_new_tokens"])
        self._start_token_id = model.start_token_id
        self._end_token_ids = model.end_token_ids
        self._tokenizer = PromptTokenizer.read(directory / TOKENIZER_FILE)
        limits = SessionLimits(
            max_batch_size=int(settings["max_batch_size"]),
            max_input_tokens=self._max_input_tokens,
            max_new_tokens=self._max_new_tokens,
            threads=int(settings["intra_op_threads"]),
            device=int(args["model_instance_device_id"]),
        )
        self._session = open_session(directory, model, limits)
        # Last of all: a copy that cannot be loaded is reported by Triton itself.
        self._connection = hold_connection(settings["socket"])
        log_info("copy_loaded", name=args["model_instance_name"])

    def execute(self, requests: Sequence[Any]) -> list[Any]:
        prompts: list[list[TokenIds] | str] = [self._prompts(request) for request in requests]
        rows = [prompt for each in prompts if not isinstance(each, str) for prompt in each]
        try:
            texts = iter(self._answers(rows))
        except ModelLostError as error:
            log_error("model_lost", message=str(error))
            # No later batch could be computed either. The container ends with this process.
            os._exit(EXIT_OPERATOR_PROBLEM)
        responses: list[Any] = []
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
        tensor = pb_utils.get_input_tensor_by_name(request, INPUT)
        texts = tensor.as_numpy().reshape(-1)
        most_bytes = self._max_input_tokens * _MOST_TOKEN_BYTES
        for index, text in enumerate(texts):
            if len(text) > most_bytes:
                return f"Input {index} has {len(text)} bytes; the limit is {most_bytes}."
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
