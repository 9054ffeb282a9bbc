"""The family's own environment variables."""

import sys
from dataclasses import dataclass
from typing import Final, Self

from containers.neuron.manifest import DTYPES, LONGEST_SEQUENCE_TOKENS, MOST_CORES, TASK_OUTPUTS
from containers.neuron.placement import NUMBER_OF_CORES
from containers.serving.settings import EnvironmentReader

# Concurrent requests that fill a pipeline, after AWS's BERT example.
PIPELINE_LANES: Final = 12
# Batches that wait in a worker without a pipeline. One is enough: it is computed while the answer
# to the batch before it travels, and another batch takes its place.
LANES_AHEAD: Final = 1
_MOST_SECONDS: Final = 3600
_OF_MANIFEST: Final = "the manifest's value"
_SERVER_WORKERS: Final = "SAGEMAKER_MODEL_SERVER_WORKERS"


@dataclass(frozen=True)
class EncoderSettings:
    """Where the model is placed, and the values that its manifest must have.

    `read` says what each field means, beside its variable. None is what the manifest says.
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

        Variables of AWS's servers and of the Neuron runtime are compared with Slipway's variables.
        A contradiction means that somebody changed only half of a deployment.
        """
        default = cls()
        workers = reader.integer(
            "SLIPWAY_WORKERS",
            default=default.workers,
            minimum=1,
            maximum=MOST_CORES,
            meaning="Worker processes. Each has a copy of the model.",
        )
        pipeline_cores = reader.optional_integer(
            "SLIPWAY_PIPELINE_CORES",
            minimum=1,
            maximum=MOST_CORES,
            meaning="NeuronCores that one copy of the model is spread over.",
            without=_OF_MANIFEST,
        )
        server_workers = reader.optional_integer(
            _SERVER_WORKERS,
            minimum=1,
            maximum=1024,
            meaning="Workers of AWS's own model server. The container only checks that it equals "
            "`SLIPWAY_WORKERS`.",
            without="no check",
        )
        if server_workers is not None and server_workers != workers:
            reader.problem(
                f"{_SERVER_WORKERS}={server_workers} and SLIPWAY_WORKERS={workers} must be the same"
            )
        cores = reader.optional_integer(
            NUMBER_OF_CORES,
            minimum=1,
            maximum=MOST_CORES,
            meaning="NeuronCores that the Neuron runtime reserves for each worker. The container "
            "checks that it equals `SLIPWAY_PIPELINE_CORES`.",
            without="no check",
        )
        if cores is not None and pipeline_cores is not None and cores != pipeline_cores:
            reader.problem(
                f"{NUMBER_OF_CORES}={cores} and SLIPWAY_PIPELINE_CORES={pipeline_cores} must be "
                "the same: a worker has the cores of one model"
            )
        return cls(
            workers=workers,
            pipeline_cores=pipeline_cores,
            task=reader.optional_choice(
                "SLIPWAY_TASK",
                allowed=tuple(TASK_OUTPUTS),
                meaning="Task of the model. The container refuses a manifest with another one.",
                without=_OF_MANIFEST,
            ),
            sequence_length=reader.optional_integer(
                "SLIPWAY_SEQUENCE_LENGTH",
                minimum=8,
                maximum=LONGEST_SEQUENCE_TOKENS,
                meaning="Longest bucket, in tokens. The container refuses a manifest with another "
                "one.",
                without=_OF_MANIFEST,
            ),
            dtype=reader.optional_choice(
                "SLIPWAY_DTYPE",
                allowed=DTYPES,
                meaning="Precision that the compiler cast products to. The container refuses a "
                "manifest with another one.",
                without=_OF_MANIFEST,
            ),
            max_text_characters=reader.integer(
                "SLIPWAY_MAX_TEXT_CHARACTERS",
                default=default.max_text_characters,
                minimum=1,
                maximum=10_000_000,
                meaning="Longest text of a request, in characters.",
            ),
            worker_start_timeout_seconds=reader.integer(
                "SLIPWAY_WORKER_START_TIMEOUT_SECONDS",
                default=default.worker_start_timeout_seconds,
                minimum=1,
                maximum=_MOST_SECONDS,
                meaning="Time that a worker may take to load its model. All workers load at the "
                "same time.",
            ),
            # AWS's image for inf1 brings torch-neuron for Python 3.10, which is older than the
            # program needs.
            worker_python=reader.text(
                "SLIPWAY_WORKER_PYTHON",
                default=default.worker_python,
                meaning="Python interpreter of the workers.",
                without="the program's own interpreter",
            ),
        )
