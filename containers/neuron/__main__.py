"""The container's program: `python -m containers.neuron serve`, or `compile`."""

import os
import sys
from collections.abc import Mapping

from containers.encoders.openapi import document_of_directory
from containers.neuron.predictor import NeuronPredictor
from containers.neuron.settings import NeuronSettings
from containers.serving.metrics import Metrics
from containers.serving.program import Program, Served
from containers.serving.settings import ServingSettings


def _serve(settings: NeuronSettings, serving: ServingSettings, metrics: Metrics) -> Served:
    predictor = NeuronPredictor(
        settings,
        max_batch_size=serving.max_batch_size,
        max_inputs=serving.max_queue_length,
        batch_timeout_seconds=serving.request_timeout_seconds,
        metrics=metrics,
    )
    # Describing the directory reads its manifest, which only /docs needs.
    document = document_of_directory(serving, settings) if serving.serves_docs else None
    return Served(predictor, document)


def _compile(environ: Mapping[str, str]) -> int:
    # Imported here, so that serving does not load it.
    from containers.neuron.compile.command import run

    return run(environ)


if __name__ == "__main__":
    program = Program("containers.neuron", NeuronSettings.read, _serve, _compile)
    program.run(sys.argv[1:], os.environ)
