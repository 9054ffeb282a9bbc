"""The container's program: `python -m containers.tensorrt serve`, or `compile`."""

import os
import sys
from collections.abc import Mapping

from containers.serving.metrics import Metrics
from containers.serving.program import Program, Served
from containers.serving.settings import ServingSettings
from containers.tensorrt.openapi import openapi_document
from containers.tensorrt.parameters import RequestLimits
from containers.tensorrt.predictor import TextGenerationPredictor
from containers.tensorrt.settings import GenerationSettings


def _serve(settings: GenerationSettings, serving: ServingSettings, metrics: Metrics) -> Served:
    limits = RequestLimits(settings, serving.max_batch_size, serving.max_queue_length)
    predictor = TextGenerationPredictor(
        settings,
        max_batch_size=limits.max_batch_size,
        max_texts=limits.max_texts,
        metrics=metrics,
    )
    return Served(predictor, openapi_document(limits))


def _compile(environ: Mapping[str, str]) -> int:
    # Imported here, so that serving does not load it.
    from containers.tensorrt.compile.command import run

    return run(environ)


if __name__ == "__main__":
    program = Program("containers.tensorrt", GenerationSettings.read, _serve, _compile)
    program.run(sys.argv[1:], os.environ)
