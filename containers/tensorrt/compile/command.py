"""The program of a compile job: checks the input, then starts the worker."""

from collections.abc import Mapping
from typing import Final

from containers.jobs.paths import JobPaths
from containers.jobs.supervision import Child, run_job
from containers.tensorrt.compile import encoder_job
from containers.tensorrt.compile.checkpoint import prepare

_WORKER: Final = "containers.tensorrt.compile.worker"
_ENCODER_WORKER: Final = "containers.tensorrt.compile.encoder_worker"


def run(environ: Mapping[str, str]) -> int:
    return run_job(environ, _checked)


def _checked(paths: JobPaths) -> Child:
    if encoder_job.is_encoder_job(paths.input_config):
        return encoder_job.prepare(paths).child(_ENCODER_WORKER)
    return prepare(paths).child(_WORKER)
