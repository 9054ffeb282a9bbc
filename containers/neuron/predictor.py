"""The family's predictor: texts in, answers out; workers compute on their own cores."""

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from containers.neuron.batches import batch_arrays, fitting
from containers.neuron.compatibility import check_manifest, installed_versions
from containers.neuron.lanes import WorkerCommand, processors
from containers.neuron.manifest import (
    CPU,
    EMBEDDINGS,
    QUESTION_ANSWERING,
    SEQUENCE_CLASSIFICATION,
    TOKEN_CLASSIFICATION,
    Manifest,
    read_manifest,
)
from containers.neuron.model_directory import (
    ModelConfig,
    check_files,
    check_graphs,
    read_config,
)
from containers.neuron.placement import Placement, placements
from containers.neuron.settings import LANES_AHEAD, PIPELINE_LANES, EncoderSettings
from containers.neuron.tasks.embeddings import Embeddings
from containers.neuron.tasks.question_answering import QuestionAnswering
from containers.neuron.tasks.sequence_classification import SequenceClassification
from containers.neuron.tasks.task import RowInput, Task, TaskSetting
from containers.neuron.tasks.token_classification import TokenClassification
from containers.neuron.tokenization import TextTokenizer
from containers.neuron.workers import RestartPolicy, WorkerPool
from containers.serving.logs import log_event
from containers.serving.metrics import Metrics
from containers.serving.model_files import TOKENIZER_FILE
from containers.serving.predictor import ModelLoadError
from containers.serving.settings import ServingSettings

_logger = logging.getLogger(__name__)

_TASKS: Final[Mapping[str, Callable[[TaskSetting], Task[Any]]]] = {
    QUESTION_ANSWERING: QuestionAnswering,
    SEQUENCE_CLASSIFICATION: SequenceClassification,
    TOKEN_CLASSIFICATION: TokenClassification,
    EMBEDDINGS: Embeddings,
}
# In units of about ten microseconds, see `Task.values_to_render`.
_MOST_VALUES_RENDERED_AT_ONCE: Final = 100


@dataclass(frozen=True)
class _Layout:
    """The placement of the workers.

    Attributes:
        placements: one per worker.
        lanes: batches that each worker computes at a time.
        lanes_ahead: batches that wait in each worker beside them.
        threads: threads that share an operator on the CPU.
        reason: explains the placement in the log.
    """

    placements: tuple[Placement, ...]
    lanes: int
    lanes_ahead: int
    threads: int
    reason: str


class EncoderPredictor:
    """Serves an encoder; a `containers.serving.predictor.ConcurrentPredictor`.

    Args:
        settings: where the model is placed.
        max_batch_size: rows that the graphs were compiled for; the serving core's setting.
        max_inputs: most rows of a request; the length of the serving core's queue.
        batch_timeout_seconds: a worker that takes longer counts as dead; the request's time is then
            over.
        metrics: counts tokens and padding.
        policy: limits the deaths of workers; None for the defaults.
    """

    def __init__(
        self,
        settings: EncoderSettings,
        *,
        max_batch_size: int = ServingSettings.max_batch_size,
        max_inputs: int = ServingSettings.max_queue_length,
        batch_timeout_seconds: float = ServingSettings.request_timeout_seconds,
        metrics: Metrics | None = None,
        policy: RestartPolicy | None = None,
    ) -> None:
        self._settings = settings
        self._max_batch_size = max_batch_size
        self._max_inputs = max_inputs
        self._batch_timeout_seconds = batch_timeout_seconds
        self._policy = policy
        metrics = metrics or Metrics()
        self._count_tokens = metrics.counter(
            "slipway_tokens", "Tokens of texts that were computed, special ones included."
        )
        self._count_padding = metrics.counter(
            "slipway_padding_tokens", "Positions that were computed beside them, for nothing."
        )
        self.lost: Future[None] = Future()
        self._manifest: Manifest
        self._config: ModelConfig
        self._task: Task[Any]
        self._pool: WorkerPool | None = None

    @property
    def concurrent_batches(self) -> int:
        """Returns the batches that all workers compute at a time; 1 before the workers start."""
        return self._pool.lanes if self._pool else 1

    @property
    def batches_ahead(self) -> int:
        """Returns the batches that may wait in the workers beside them."""
        return self._pool.lanes_ahead if self._pool else 0

    def worker_process_ids(self) -> list[int]:
        """Returns the process ids of the workers."""
        return self._loaded_pool().process_ids()

    def load(self, model_dir: Path) -> None:
        """Checks the directory and starts the workers, each of which computes a batch per bucket.

        Raises:
            ModelLoadError: the message holds every problem that was found.
        """
        check_files(model_dir)
        manifest = read_manifest(model_dir)
        settings = self._settings
        check_manifest(
            manifest,
            settings,
            self._max_batch_size,
            installed_versions(settings.worker_python, manifest.packages),
        )
        check_graphs(model_dir, manifest)
        config = read_config(model_dir, manifest.task)
        tokenizer = TextTokenizer.read(model_dir / TOKENIZER_FILE)
        _check_tokenizer(tokenizer, config, manifest)
        self._manifest, self._config = manifest, config
        self._task = _TASKS[manifest.task](
            TaskSetting(
                tokenizer=tokenizer,
                buckets=manifest.buckets,
                max_inputs=self._max_inputs,
                max_characters=settings.max_text_characters,
                label_names=config.label_names,
                score_function=config.score_function,
                normalize=manifest.normalize,
            )
        )
        layout = _layout(manifest, settings.workers)
        log_event(
            _logger,
            logging.INFO,
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

    def parse(self, body: bytes) -> tuple[RowInput, ...]:
        """Parses a body and makes rows of it.

        Raises:
            InvalidRequestError: the body is not a valid request.
        """
        return self._task.parse(body)

    def choose(self, waiting: Sequence[RowInput], most: int) -> Sequence[int]:
        """Returns the indices of the inputs that are computed together; see `fitting`."""
        return fitting(
            [value.bucket for value in waiting],
            most,
            has_free_rows=not self._manifest.takes_partial_batches,
        )

    def predict(self, batch: Sequence[RowInput]) -> list[Any]:
        """Computes a batch on the next free worker."""
        manifest = self._manifest
        rows = [value.row for value in batch]
        # If the graph takes any length, padding to the whole bucket would waste compute.
        columns = max(
            map(len, rows) if manifest.takes_any_length else (value.bucket for value in batch)
        )
        arrays = batch_arrays(
            rows,
            bucket=columns,
            batch_size=None if manifest.takes_partial_batches else manifest.batch_size,
            pad_token_id=self._config.pad_token_id,
        )
        tokens = sum(map(len, rows))
        self._count_tokens(tokens)
        self._count_padding(arrays["input_ids"].size - tokens)
        outputs = self._loaded_pool().compute(arrays)
        return [
            self._task.decode(value, {name: array[number] for name, array in outputs.items()})
            for number, value in enumerate(batch)
        ]

    def render(self, outputs: Sequence[Any]) -> bytes:
        """Returns the JSON answer of a request."""
        return self._task.render(outputs)

    def renders_long(self, outputs: Sequence[Any]) -> bool:
        """Returns whether `render` takes more than about a millisecond."""
        return self._task.values_to_render(outputs) > _MOST_VALUES_RENDERED_AT_ONCE

    def close(self) -> None:
        """Stops the workers."""
        if self._pool is not None:
            self._pool.close()

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


def _check_tokenizer(tokenizer: TextTokenizer, config: ModelConfig, manifest: Manifest) -> None:
    if tokenizer.vocabulary_size > config.vocabulary_size:
        raise ModelLoadError(
            f"{TOKENIZER_FILE} has {tokenizer.vocabulary_size} tokens and the model only "
            f"{config.vocabulary_size}: they do not belong together"
        )
    special_tokens = tokenizer.pair.special_tokens
    if manifest.buckets[-1] < special_tokens + 2:
        raise ModelLoadError(
            f"a sequence of {manifest.buckets[-1]} tokens leaves no room for texts beside "
            f"{special_tokens} special tokens"
        )
