"""The TensorRT container with static batching: a batch ends before the next one begins.

Continuous batching is measured against it. Graph, back end, decode loop, requests and server are
the container's own. The only difference: inputs that arrive while a batch is decoded wait for its
last token.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from containers.serving.logs import configure_logging
from containers.serving.server import run_until_terminated
from containers.serving.settings import EnvironmentReader, ServingSettings
from containers.tensorrt.answers import Answers
from containers.tensorrt.predictor import TextGenerationPredictor, TextInput
from containers.tensorrt.settings import GenerationSettings


class StaticTextGeneration:
    """A `containers.serving.predictor.Predictor`: it answers whole batches."""

    def __init__(self, stepwise: TextGenerationPredictor) -> None:
        self._stepwise = stepwise

    def load(self, model_dir: Path) -> None:
        self._stepwise.load(model_dir)

    def parse(self, body: bytes) -> tuple[TextInput, ...]:
        return self._stepwise.parse(body)

    def predict(self, batch: Sequence[TextInput]) -> list[Answers]:
        answers = dict(self._stepwise.join(dict(enumerate(batch))).outputs)
        while len(answers) < len(batch):
            answers |= self._stepwise.step().outputs
        return [answers[place] for place in range(len(batch))]

    def render(self, outputs: Sequence[Answers]) -> bytes:
        return self._stepwise.render(outputs)


def main() -> None:
    configure_logging("INFO", sys.stdout)
    reader = EnvironmentReader(os.environ)
    serving = ServingSettings.read(reader)
    generation = GenerationSettings.read(reader)
    reader.finish()
    predictor = TextGenerationPredictor(generation, max_batch_size=serving.max_batch_size)
    run_until_terminated(StaticTextGeneration(predictor), serving)


if __name__ == "__main__":
    main()
