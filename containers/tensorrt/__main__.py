"""The container's program: `python -m containers.tensorrt serve`, or `compile`."""

import os
import sys
from collections.abc import Mapping

from containers.encoders.manifest import manifest_file
from containers.encoders.openapi import document_of_directory
from containers.serving.metrics import Metrics
from containers.serving.program import Program, Served
from containers.serving.settings import ServingSettings
from containers.tensorrt.encoder_predictor import SessionPredictor
from containers.tensorrt.openapi import openapi_document
from containers.tensorrt.parameters import RequestLimits
from containers.tensorrt.predictor import TextGenerationPredictor
from containers.tensorrt.settings import TensorRTSettings


def _serve(settings: TensorRTSettings, serving: ServingSettings, metrics: Metrics) -> Served:
    manifest = serving.model_dir / manifest_file(serving.model_dir)
    if settings.encoder.task is not None or manifest.is_file():
        encoder = SessionPredictor(
            settings,
            max_batch_size=serving.max_batch_size,
            max_inputs=serving.max_queue_length,
            metrics=metrics,
        )
        return Served(encoder, document_of_directory(serving, settings.encoder))
    generation = settings.generation
    limits = RequestLimits(generation, serving.max_batch_size, serving.max_queue_length)
    predictor = TextGenerationPredictor(
        generation,
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
    program = Program("containers.tensorrt", TensorRTSettings.read, _serve, _compile)
    program.run(sys.argv[1:], os.environ)
