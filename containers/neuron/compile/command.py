"""The program of a compile job: checks the input, then starts the worker."""

import sys
from collections.abc import Mapping
from dataclasses import asdict
from typing import Final

from containers.encoders.compile.checkpoint import read_checkpoint
from containers.jobs.paths import JobPaths
from containers.jobs.supervision import Child, checked_input, run_job
from containers.neuron.compile.job import WorkerCommand, read_hyperparameters

# The interpreter that has the framework; the serving workers use the same.
_WORKER_PYTHON: Final = "SLIPWAY_WORKER_PYTHON"
# neuronx's libraries look for the device when they are imported. Without a device they end the
# process, unless this variable names the device to assume
# (https://github.com/huggingface/optimum-neuron/pull/961).
_PLATFORM: Final = "NEURON_PLATFORM_TARGET_OVERRIDE"
_NEURONX_TARGETS: Final = ("inf2", "trn1")
# neuron-cc may bring TensorFlow; this keeps transformers from loading it.
_ENVIRONMENT: Final = {"USE_TF": "0", "USE_TORCH": "1"}


def run(environ: Mapping[str, str]) -> int:
    python = environ.get(_WORKER_PYTHON) or sys.executable
    return run_job(environ, lambda paths: _checked(paths, python))


def _checked(paths: JobPaths, python: str) -> Child:
    asked, checkpoint = checked_input(paths, read_hyperparameters, read_checkpoint)
    platform = {_PLATFORM: asked.target} if asked.target in _NEURONX_TARGETS else {}
    order = WorkerCommand(
        checkpoint=checkpoint.directory.absolute(),
        output=paths.output.absolute(),
        model_class=checkpoint.model_class,
        pooling=checkpoint.pooling,
        normalize=checkpoint.normalize,
        **asdict(asked),
    )
    return Child(
        command=(python, "-m", "containers.neuron.compile.worker", order.to_json()),
        checkpoint_bytes=checkpoint.weight_bytes,
        fields={**asdict(asked), "model_class": checkpoint.model_class},
        environment=_ENVIRONMENT | platform,
    )
