"""The family's predictor: workers compute on their own cores."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from containers.encoders.manifest import CPU, Manifest
from containers.encoders.predictor import EncoderPredictor, check_manifest
from containers.encoders.tasks import RowOutputs
from containers.neuron.lanes import WorkerCommand, exit_reason, processors
from containers.neuron.placement import Placement, placements
from containers.neuron.settings import LANES_AHEAD, PIPELINE_LANES, NeuronSettings
from containers.neuron.workers import RestartPolicy, WorkerPool
from containers.serving.logs import log_info
from containers.serving.metrics import Metrics
from containers.serving.predictor import ModelLoadError
from containers.serving.settings import ServingSettings

_VERSIONS_TIMEOUT_SECONDS: Final = 60
# Run by the workers' Python: prints a line for each installed package.
_VERSIONS_PROGRAM: Final = """
import sys
from importlib.metadata import PackageNotFoundError, version
for name in sys.argv[1:]:
    try:
        print(name, version(name))
    except PackageNotFoundError:
        pass
"""


@dataclass(frozen=True)
class _Layout:
    """The placement of the workers.

    Each worker computes `lanes` batches at a time, and `lanes_ahead` batches wait there beside
    them. On the CPU, `threads` share an operator. The reason is for the log.
    """

    placements: tuple[Placement, ...]
    lanes: int
    lanes_ahead: int
    threads: int
    reason: str


class NeuronPredictor(EncoderPredictor):
    """An `EncoderPredictor` whose workers compute.

    A worker that takes longer than `batch_timeout_seconds` counts as dead; the request's time is
    then over.
    """

    def __init__(
        self,
        settings: NeuronSettings,
        *,
        max_batch_size: int = ServingSettings.max_batch_size,
        max_inputs: int = ServingSettings.max_queue_length,
        batch_timeout_seconds: float = ServingSettings.request_timeout_seconds,
        metrics: Metrics | None = None,
        policy: RestartPolicy | None = None,
    ) -> None:
        super().__init__(
            settings, max_batch_size=max_batch_size, max_inputs=max_inputs, metrics=metrics
        )
        self._settings = settings
        self._batch_timeout_seconds = batch_timeout_seconds
        self._policy = policy
        self._pool: WorkerPool | None = None

    @property
    def concurrent_batches(self) -> int:
        return self._pool.lanes if self._pool else 1

    @property
    def batches_ahead(self) -> int:
        return self._pool.lanes_ahead if self._pool else 0

    def worker_process_ids(self) -> list[int]:
        return self._loaded_pool().process_ids()

    def close(self) -> None:
        if self._pool is not None:
            self._pool.close()

    def _check(self, manifest: Manifest) -> None:
        settings = self._settings
        installed = installed_versions(settings.worker_python, manifest.packages)
        check_manifest(manifest, settings, self._max_batch_size, installed, settings.pipeline_cores)

    def _start(self, model_dir: Path, manifest: Manifest) -> None:
        layout = _layout(manifest, self._settings.workers)
        log_info(
            "workers_placed",
            task=manifest.task,
            target=manifest.target,
            runtime=manifest.runtime,
            workers=len(layout.placements),
            cores_per_worker=len(layout.placements[0].cores),
            lanes_per_worker=layout.lanes,
            lanes_ahead_per_worker=layout.lanes_ahead,
            threads_per_worker=layout.threads,
            batch_size=manifest.batch_size,
            sequence_lengths=manifest.buckets,
            reason=layout.reason,
        )
        policy = self._policy or RestartPolicy(most_deaths=3 + len(layout.placements))
        pool = WorkerPool(layout.placements, self._command(model_dir, layout), policy, self.lost)
        self._pool = pool
        pool.start()

    def _compute(self, arrays: Mapping[str, NDArray[np.int64]]) -> RowOutputs:
        return self._loaded_pool().compute(arrays)

    def _command(self, model_dir: Path, layout: _Layout) -> WorkerCommand:
        settings = self._settings
        return WorkerCommand(
            arguments=(
                settings.worker_python,
                "-m",
                "containers.neuron.worker",
                str(model_dir),
                str(layout.threads),
            ),
            environment=os.environ,
            lanes=layout.lanes,
            lanes_ahead=layout.lanes_ahead,
            start_timeout_seconds=settings.worker_start_timeout_seconds,
            batch_timeout_seconds=self._batch_timeout_seconds,
        )

    def _loaded_pool(self) -> WorkerPool:
        if self._pool is None:
            raise RuntimeError("the model is not loaded")
        return self._pool


def _layout(manifest: Manifest, workers: int) -> _Layout:
    if manifest.target == CPU:
        # A sample stands for a model on any number of cores; on the CPU, processors take their
        # place.
        there = processors()
        started = min(workers, there)
        return _Layout(
            placements(started, 0),
            lanes=1,
            lanes_ahead=LANES_AHEAD,
            threads=max(1, there // started),
            reason=f"{workers} workers wanted, and the CPU has {there} processors",
        )
    cores = manifest.pipeline_cores
    is_pipeline = cores > 1
    return _Layout(
        placements(workers, cores),
        lanes=PIPELINE_LANES if is_pipeline else 1,
        # A pipeline's lanes keep it full already.
        lanes_ahead=0 if is_pipeline else LANES_AHEAD,
        # The devices compute, and little is left for the host.
        threads=1,
        reason=f"a pipeline of {cores} NeuronCores in each worker"
        if is_pipeline
        else "data parallel, a NeuronCore for each worker",
    )


def installed_versions(python: str, packages: Sequence[str]) -> dict[str, str]:
    """Returns the versions of the packages that an interpreter has, without importing them.

    Raises `ModelLoadError` if the interpreter cannot be run.
    """
    if not packages:
        return {}
    try:
        done = subprocess.run(  # noqa: S603  (a fixed program, and names of packages)
            [python, "-c", _VERSIONS_PROGRAM, *packages],
            capture_output=True,
            text=True,
            timeout=_VERSIONS_TIMEOUT_SECONDS,
            check=False,
        )
    except OSError as error:
        raise ModelLoadError(
            f"cannot start SLIPWAY_WORKER_PYTHON={python}: {error.strerror}"
        ) from error
    except subprocess.TimeoutExpired as error:
        raise ModelLoadError(
            f"SLIPWAY_WORKER_PYTHON={python} did not answer within {_VERSIONS_TIMEOUT_SECONDS} "
            "seconds"
        ) from error
    if done.returncode:
        said = done.stderr.strip().splitlines()
        raise ModelLoadError(
            f"SLIPWAY_WORKER_PYTHON={python} does not work: "
            f"{said[-1] if said else exit_reason(done.returncode)}"
        )
    pairs = (line.partition(" ") for line in done.stdout.splitlines())
    return {name: version for name, _, version in pairs}
