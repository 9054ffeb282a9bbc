"""The same graphs and decode loop in the serving core of Slipway's other containers.

    python -m benchmarks.triton.serving_core

It batches whole requests in one process. A batch ends before the next one begins, as in Triton. The
environment variables are the container's.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.triton.design import MAX_TOKENS, answer, read_query
from containers.serving.logs import configure_logging
from containers.serving.server import run_until_terminated
from containers.serving.settings import EnvironmentReader, ServingSettings
from containers.tensorrt.tokenization import PromptTokenizer
from containers.triton.decoding import TokenIds, answers
from containers.triton.model_directory import read_config
from containers.triton.onnx_session import OnnxSequenceSession


class SpellingPredictor:
    """A `containers.serving.predictor.Predictor` around the decode loop, with one thread."""

    def load(self, model_dir: Path) -> None:
        self._config = read_config(model_dir)
        self._tokenizer = PromptTokenizer.read(model_dir / "tokenizer.json")
        self._session = OnnxSequenceSession(model_dir, threads=1)

    def parse(self, body: bytes) -> tuple[TokenIds, ...]:
        return tuple(self._tokenizer.encode([read_query(body)], max_tokens=MAX_TOKENS))

    def predict(self, batch: Sequence[TokenIds]) -> list[str]:
        found = answers(
            self._session,
            batch,
            max_new_tokens=MAX_TOKENS,
            start_token_id=self._config.start_token_id,
            end_token_ids=self._config.end_token_ids,
        )
        return [self._tokenizer.decode(list(each)) for each in found]

    def render(self, outputs: Sequence[str]) -> bytes:
        [text] = outputs
        return answer(text).encode()


def main() -> None:
    configure_logging("INFO", sys.stdout)
    reader = EnvironmentReader(os.environ)
    serving = ServingSettings.read(reader)
    reader.finish()
    run_until_terminated(SpellingPredictor(), serving)


if __name__ == "__main__":
    main()
