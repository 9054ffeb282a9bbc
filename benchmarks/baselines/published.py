"""The published layout's application: Flask around `generate` of transformers, on PyTorch.

Each gunicorn worker loads the model once. Requests and answers have the form of the TensorRT
container's (docs/requests.md), so that both servers get the same bytes. `inputs` is a text or a
list of texts; of the parameters, only `max_new_tokens` is read.

For speed it uses evaluation mode, inference mode, a fast tokenizer, and one batch for the texts of
a request. It uses as many threads as it is given, and generates once before the first request.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
import transformers
from flask import Flask
from tokenizers import Tokenizer

from benchmarks.baselines import stack
from benchmarks.baselines.flask_application import make_app

_PAD_TOKEN_ID = 0
_WARM_UP_PROMPTS = 10
_WARM_UP_NEW_TOKENS = 3


class Generator:
    def __init__(self, model_directory: Path, *, use_cache: bool) -> None:
        self._tokenizer = Tokenizer.from_file(str(model_directory / "tokenizer.json"))
        self._model = transformers.GPT2LMHeadModel.from_pretrained(
            model_directory, dtype=torch.float32
        ).eval()
        self._use_cache = use_cache

    def generate(self, texts: Sequence[str], max_new_tokens: int) -> list[str]:
        """Continues texts greedily, as one batch that is padded on the left."""
        prompts = [encoding.ids for encoding in self._tokenizer.encode_batch(list(texts))]
        longest = max(map(len, prompts))
        padding = [longest - len(prompt) for prompt in prompts]
        input_ids = torch.tensor(
            [
                [_PAD_TOKEN_ID] * missing + prompt
                for missing, prompt in zip(padding, prompts, strict=True)
            ]
        )
        mask = torch.tensor([[0] * missing + [1] * (longest - missing) for missing in padding])
        with torch.inference_mode():
            sequences = self._model.generate(
                input_ids,
                attention_mask=mask,
                do_sample=False,
                max_new_tokens=max_new_tokens,
                use_cache=self._use_cache,
                pad_token_id=_PAD_TOKEN_ID,
            )
        answers: list[str] = self._tokenizer.decode_batch(sequences[:, longest:].tolist())
        return answers

    def warm_up(self) -> None:
        text = self._tokenizer.decode([self._tokenizer.get_vocab_size() - 1])
        self.generate([text] * _WARM_UP_PROMPTS, _WARM_UP_NEW_TOKENS)


def create_app(environ: Mapping[str, str] = os.environ) -> Flask:
    """Loads the model and returns the application; gunicorn calls it in each worker."""
    torch.set_num_threads(int(environ[stack.THREADS]))
    generator = Generator(
        Path(environ[stack.MODEL_DIRECTORY]),
        use_cache={"true": True, "false": False}[environ[stack.CACHE]],
    )
    generator.warm_up()

    def answer(document: Mapping[str, Any]) -> list[dict[str, str]]:
        inputs = document["inputs"]
        texts = [inputs] if isinstance(inputs, str) else inputs
        answers = generator.generate(texts, document["parameters"]["max_new_tokens"])
        return [{"generated_text": each} for each in answers]

    return make_app(answer, environ)
