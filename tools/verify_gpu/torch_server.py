"""PyTorch's `generate` in Slipway's serving core: in float16 on a GPU, in float32 without one.

    python -m tools.verify_gpu.torch_server [--without-cache]

It stands for the published layout, whose server computes one request at a time: a batch then has
the texts of one request. With a larger SLIPWAY_MAX_BATCH_SIZE, the texts of several requests form a
batch. All texts must have the same number of tokens, and of new tokens.
"""

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import torch
import transformers
from tokenizers import Tokenizer

from containers.serving.logs import configure_logging
from containers.serving.server import run_until_terminated
from containers.serving.settings import EnvironmentReader, ServingSettings


class TorchGeneration:
    """A `containers.serving.predictor.Predictor`."""

    def __init__(self, *, use_cache: bool) -> None:
        self._use_cache = use_cache
        has_gpu = torch.cuda.is_available()
        self._device, self._type = ("cuda", torch.float16) if has_gpu else ("cpu", torch.float32)

    def load(self, model_dir: Path) -> None:
        self._tokenizer = Tokenizer.from_file(str(model_dir / "tokenizer.json"))
        self._model = transformers.GPT2LMHeadModel.from_pretrained(model_dir, dtype=self._type)
        self._model.eval().to(self._device)
        self.predict([([0, 0], 2)])

    def parse(self, body: bytes) -> tuple[tuple[list[int], int], ...]:
        """Parses a body into the tokens of each text and their number of new tokens."""
        document = json.loads(body)
        count = document["parameters"]["max_new_tokens"]
        return tuple(
            (encoding.ids, count) for encoding in self._tokenizer.encode_batch(document["inputs"])
        )

    def predict(self, batch: Sequence[tuple[list[int], int]]) -> list[str]:
        input_ids = torch.tensor([tokens for tokens, _ in batch], device=self._device)
        [count] = {count for _, count in batch}
        with torch.inference_mode():
            found = self._model.generate(
                input_ids,
                attention_mask=torch.ones_like(input_ids),
                do_sample=False,
                max_new_tokens=count,
                use_cache=self._use_cache,
                pad_token_id=0,
            )
        return self._tokenizer.decode_batch(found[:, input_ids.shape[1] :].tolist())

    def render(self, outputs: Sequence[str]) -> bytes:
        return json.dumps([{"generated_text": text} for text in outputs]).encode()


def main() -> None:
    configure_logging("INFO", sys.stdout)
    transformers.logging.set_verbosity_error()
    reader = EnvironmentReader(os.environ)
    serving = ServingSettings.read(reader)
    reader.finish()
    run_until_terminated(TorchGeneration(use_cache="--without-cache" not in sys.argv), serving)


if __name__ == "__main__":
    main()
