"""The family's own environment variables."""

import sys
from dataclasses import dataclass
from typing import Final, Self

from containers.neuron.manifest import DTYPES, TASK_OUTPUTS
from containers.neuron.placement import NUMBER_OF_CORES
from containers.serving.settings import EnvironmentReader

# Requests in flight that fill a pipeline, after AWS's BERT example.
PIPELINE_LANES: Final = 12
_MOST_CORES: Final = 64
_MOST_SECONDS: Final = 3600
_SERVER_WORKERS: Final = "SAGEMAKER_MODEL_SERVER_WORKERS"


@dataclass(frozen=True)
class EncoderSettings:
    """Where the model is placed, and what its manifest must say.

    Attributes:
        workers: processes, each with a model of its own.
        pipeline_cores: NeuronCores that one model is spread over; None is what the manifest says.
        task: what the model is asked; None is what the manifest says.
        sequence_length: its longest bucket, in tokens; None is what the manifest says.
        dtype: what products are cast to; None is what the manifest says.
        max_text_characters: longest text of a request.
        worker_start_timeout_seconds: for a worker to load its model. All of an instance's load at
            a time.
        worker_python: interpreter of the workers: AWS's image for inf1 brings torch-neuron for
            Python 3.10, which is older than the program needs.
    """

    workers: int = 1
    pipeline_cores: int | None = None
    task: str | None = None
    sequence_length: int | None = None
    dtype: str | None = None
    max_text_characters: int = 200_000
    worker_start_timeout_seconds: int = 900
    worker_python: str = sys.executable

    @classmethod
    def read(cls, reader: EnvironmentReader) -> Self:
        """Reads the settings; problems stay with `reader` until its `finish`.

        The variables that AWS's servers and the Neuron runtime know are held against ours: one of
        them that says something else is a deployment that somebody changed by half.
        """
        default = cls()
        workers = reader.integer(
            "SLIPWAY_WORKERS", default=default.workers, minimum=1, maximum=_MOST_CORES
        )
        pipeline_cores = reader.optional_integer(
            "SLIPWAY_PIPELINE_CORES", minimum=1, maximum=_MOST_CORES
        )
        server_workers = reader.optional_integer(_SERVER_WORKERS, minimum=1, maximum=1024)
        if server_workers is not None and server_workers != workers:
            reader.problem(
                f"{_SERVER_WORKERS}={server_workers} and SLIPWAY_WORKERS={workers} must be the same"
            )
        cores = reader.optional_integer(NUMBER_OF_CORES, minimum=1, maximum=_MOST_CORES)
        if cores is not None and pipeline_cores is not None and cores != pipeline_cores:
            reader.problem(
                f"{NUMBER_OF_CORES}={cores} and SLIPWAY_PIPELINE_CORES={pipeline_cores} must be "
                "the same: a worker has the cores of one model"
            )
        return cls(
            workers=workers,
            pipeline_cores=pipeline_cores,
            task=reader.optional_choice("SLIPWAY_TASK", allowed=tuple(TASK_OUTPUTS)),
            sequence_length=reader.optional_integer(
                "SLIPWAY_SEQUENCE_LENGTH", minimum=8, maximum=4096
            ),
            dtype=reader.optional_choice("SLIPWAY_DTYPE", allowed=DTYPES),
            max_text_characters=reader.integer(
                "SLIPWAY_MAX_TEXT_CHARACTERS",
                default=default.max_text_characters,
                minimum=1,
                maximum=10_000_000,
            ),
            worker_start_timeout_seconds=reader.integer(
                "SLIPWAY_WORKER_START_TIMEOUT_SECONDS",
                default=default.worker_start_timeout_seconds,
                minimum=1,
                maximum=_MOST_SECONDS,
            ),
            worker_python=reader.text("SLIPWAY_WORKER_PYTHON", default=default.worker_python),
        )
