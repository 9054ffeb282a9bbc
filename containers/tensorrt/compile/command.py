"""The program of a compile job: checks the input, then starts the worker."""

import dataclasses
import sys
from collections.abc import Mapping

from containers.jobs.paths import JobPaths
from containers.jobs.supervision import Child, run_job
from containers.tensorrt.compile.checkpoint import prepare


def run(environ: Mapping[str, str]) -> int:
    """Runs a compile job; returns the process's exit code, see `run_job`."""
    return run_job(environ, _checked)


def _checked(paths: JobPaths) -> Child:
    job = prepare(paths)
    return Child(
        command=(sys.executable, "-m", "containers.tensorrt.compile.worker"),
        checkpoint_bytes=job.checkpoint.weight_bytes,
        fields=dataclasses.asdict(job.hyperparameters),
    )
