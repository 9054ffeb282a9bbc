"""The family's own environment variables."""

import sys
from dataclasses import dataclass
from typing import Final, Self

from containers.encoders.manifest import MOST_CORES
from containers.encoders.settings import OF_MANIFEST, EncoderSettings
from containers.neuron.placement import NUMBER_OF_CORES
from containers.serving.settings import EnvironmentReader, text, whole_number

# Concurrent requests that fill a pipeline, after AWS's BERT example.
PIPELINE_LANES: Final = 12
# Batches that wait in a worker without a pipeline. One is enough: it is computed while the answer
# to the batch before it travels, and another batch takes its place.
LANES_AHEAD: Final = 1
_MOST_SECONDS: Final = 3600


@dataclass(frozen=True)
class NeuronSettings(EncoderSettings):
    """Where the model is placed, beside the settings of every encoder.

    `server_workers` and `reserved_cores` belong to AWS's server and
    to the Neuron runtime. A contradiction to Slipway's variables means that somebody changed only
    half of a deployment.
    """

    workers: int = whole_number(
        "SLIPWAY_WORKERS",
        1,
        (1, MOST_CORES),
        "Worker processes. Each has a copy of the model.",
    )
    pipeline_cores: int | None = whole_number(
        "SLIPWAY_PIPELINE_CORES",
        None,
        (1, MOST_CORES),
        "NeuronCores that one copy of the model is spread over.",
        without=OF_MANIFEST,
    )
    server_workers: int | None = whole_number(
        "SAGEMAKER_MODEL_SERVER_WORKERS",
        None,
        (1, 1024),
        "Workers of AWS's own model server. The container only checks that it equals "
        "`SLIPWAY_WORKERS`.",
        without="no check",
    )
    reserved_cores: int | None = whole_number(
        NUMBER_OF_CORES,
        None,
        (1, MOST_CORES),
        "NeuronCores that the Neuron runtime reserves for each worker. The container checks that "
        "it equals `SLIPWAY_PIPELINE_CORES`.",
        without="no check",
    )
    worker_start_timeout_seconds: int = whole_number(
        "SLIPWAY_WORKER_START_TIMEOUT_SECONDS",
        900,
        (1, _MOST_SECONDS),
        "Time that a worker may take to load its model. All workers load at the same time.",
    )
    # AWS's image for inf1 brings torch-neuron for Python 3.10, which is older than the program
    # needs.
    worker_python: str = text(
        "SLIPWAY_WORKER_PYTHON",
        sys.executable,
        "Python interpreter of the workers.",
        without="the program's own interpreter",
    )

    @classmethod
    def read(cls, reader: EnvironmentReader) -> Self:
        settings = super().read(reader)
        if settings.server_workers not in (None, settings.workers):
            reader.problem(
                f"SAGEMAKER_MODEL_SERVER_WORKERS={settings.server_workers} and "
                f"SLIPWAY_WORKERS={settings.workers} must be the same"
            )
        cores = settings.reserved_cores
        if cores is not None and settings.pipeline_cores not in (None, cores):
            reader.problem(
                f"{NUMBER_OF_CORES}={cores} and SLIPWAY_PIPELINE_CORES={settings.pipeline_cores} "
                "must be the same: a worker has the cores of one model"
            )
        return settings
