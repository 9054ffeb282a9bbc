"""A naive server of question answering: Flask around a traced encoder, one request at a time.

It is the usual code around `torch.jit.load`. Each gunicorn worker loads the model once. Each
request is one forward pass over one row that is padded to the length the model was traced for. A
context that does not fit is cut off. Requests and answers have the form of the Neuron container's
(docs/requests.md), so that both servers get the same bytes; parameters are not read.

For speed it uses inference mode, the tokenizer in Rust without `transformers` around it, and as
many threads as it is given. Some passes run before the first request, because TorchScript optimizes
its graph during them. NumPy finds spans as `transformers`' pipeline does. Freezing the graph was
tried with BERT-base: it was slower.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from flask import Flask
from tokenizers import Tokenizer

from benchmarks.baselines import stack
from benchmarks.baselines.flask_application import make_app

MODEL_FILE = "model.pt"
SEQUENCE_LENGTH = 128  # tokens that the model was traced for, special ones included

# The longest answer of `transformers` and the container without max_answer_len.
_MOST_ANSWER_TOKENS = 15
_WARM_UP_PASSES = 3

FloatArray = npt.NDArray[np.float32]


class QuestionAnswerer:
    """A traced encoder with its tokenizer.

    `MODEL_FILE` takes input_ids, attention_mask and token_type_ids of 1 x `SEQUENCE_LENGTH`.
    """

    def __init__(self, model_directory: Path) -> None:
        self._tokenizer = Tokenizer.from_file(str(model_directory / "tokenizer.json"))
        self._tokenizer.enable_truncation(SEQUENCE_LENGTH, strategy="only_second")
        self._tokenizer.enable_padding(length=SEQUENCE_LENGTH)
        self._model = torch.jit.load(str(model_directory / MODEL_FILE)).eval()

    # Any: JSON.
    def answer(self, question: str, context: str) -> dict[str, Any]:
        """Returns the best span of the context, as `transformers`' pipeline chooses it."""
        encoding = self._tokenizer.encode(question, context)
        rows = (encoding.ids, encoding.attention_mask, encoding.type_ids)
        with torch.inference_mode():
            starts, ends = self._model(*(torch.tensor([row]) for row in rows))
        # In addition to the context, the first token counts, which stands for "no answer here".
        counts = np.array([sequence == 1 for sequence in encoding.sequence_ids])
        start, end = (
            _probabilities(logits[0].numpy(), np.concatenate(([True], counts[1:])))
            for logits in (starts, ends)
        )
        start[0] = end[0] = 0.0
        # The score of each span, by its first and its last token.
        scores = np.tril(np.triu(np.outer(start, end)), _MOST_ANSWER_TOKENS - 1)
        first, last = np.unravel_index(scores.argmax(), scores.shape)
        begins_at, ends_at = encoding.offsets[first][0], encoding.offsets[last][1]
        return {
            "score": float(scores[first, last]),
            "start": begins_at,
            "end": ends_at,
            "answer": context[begins_at:ends_at],
        }

    def warm_up(self) -> None:
        for _ in range(_WARM_UP_PASSES):
            self.answer("a", "a")


def _probabilities(logits: FloatArray, counts: npt.NDArray[np.bool_]) -> FloatArray:
    """Returns the softmax over the tokens that count; the other tokens get 0."""
    exponentials = np.exp(np.where(counts, logits - logits[counts].max(), -np.inf))
    probabilities: FloatArray = exponentials / exponentials.sum()
    return probabilities


def create_app(environ: Mapping[str, str] = os.environ) -> Flask:
    """Loads the model and returns the application; gunicorn calls it in each worker."""
    torch.set_num_threads(int(environ[stack.THREADS]))
    answerer = QuestionAnswerer(Path(environ[stack.MODEL_DIRECTORY]))
    answerer.warm_up()

    def answer(document: Mapping[str, Any]) -> dict[str, Any]:
        inputs = document["inputs"]
        return answerer.answer(inputs["question"], inputs["context"])

    return make_app(answer, environ)
