"""The program of a compile job: checks the input, then starts the worker."""

from collections.abc import Mapping
from typing import Final

from containers.jobs.supervision import run_job
from containers.triton.compile.checkpoint import prepare

_WORKER: Final = "containers.triton.compile.worker"


def run(environ: Mapping[str, str]) -> int:
    return run_job(environ, lambda paths: prepare(paths).child(_WORKER))
