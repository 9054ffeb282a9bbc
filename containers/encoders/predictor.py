"""The predictor of every family's encoders: texts in, answers out; a family computes batches."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from containers.encoders.batches import batch_arrays, fitting
from containers.encoders.manifest import CPU, REMEDY, RUNTIME_PACKAGES, Manifest, read_manifest
from containers.encoders.model_directory import ModelConfig, check_files, check_graphs, read_config
from containers.encoders.settings import EncoderSettings
from containers.encoders.tasks import TASKS, RowInput, RowOutputs, Task, TaskSetting
from containers.encoders.tokenization import TextTokenizer
from containers.serving.metrics import Metrics
from containers.serving.model_files import TOKENIZER_FILE
from containers.serving.predictor import ModelLoadError
from containers.serving.settings import ServingSettings

# A graph of any length pads a batch to its longest row, so rows of about one length share a batch.
# See benchmarks/README.md: a smaller share of padding gains more than larger batches do.
_COLUMNS_PADDED_AT_MOST: Final = 16
# In units of about ten microseconds, see `Task.values_to_render`.
_MOST_VALUES_RENDERED_AT_ONCE: Final = 100


class EncoderPredictor(ABC):
    """Serves an encoder; a `containers.serving.predictor.ConcurrentPredictor`.

    `max_inputs` is the most rows of a request, the length of the serving core's queue.
    """

    def __init__(
        self,
        settings: EncoderSettings,
        *,
        max_batch_size: int = ServingSettings.max_batch_size,
        max_inputs: int = ServingSettings.max_queue_length,
        metrics: Metrics | None = None,
    ) -> None:
        self._max_text_characters = settings.max_text_characters
        self._max_batch_size = max_batch_size
        self._max_inputs = max_inputs
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

    @property
    @abstractmethod
    def concurrent_batches(self) -> int:
        """Returns the most batches at a time; see `ConcurrentPredictor`."""

    @property
    @abstractmethod
    def batches_ahead(self) -> int:
        """Returns the batches that may wait beside them; see `ConcurrentPredictor`."""

    @abstractmethod
    def _check(self, manifest: Manifest) -> None:
        """Raises `ModelLoadError` for a model that was compiled for something else."""

    @abstractmethod
    def _start(self, model_dir: Path, manifest: Manifest) -> None:
        """Loads the graphs, and computes a batch of each bucket."""

    @abstractmethod
    def _compute(self, arrays: Mapping[str, NDArray[np.int64]]) -> RowOutputs:
        """Returns the outputs of a batch, as the task takes them; several threads call it."""

    @abstractmethod
    def close(self) -> None:
        """Ends everything that `load` started."""

    @property
    def _takes_any_length(self) -> bool:
        return self._manifest.takes_any_length

    def load(self, model_dir: Path) -> None:
        """Checks the directory and starts what computes; `ModelLoadError` has every problem."""
        check_files(model_dir)
        manifest = read_manifest(model_dir)
        self._check(manifest)
        check_graphs(model_dir, manifest)
        config = read_config(model_dir, manifest.task)
        tokenizer = TextTokenizer.read(model_dir / TOKENIZER_FILE)
        _check_tokenizer(tokenizer, config, manifest)
        self._manifest, self._config = manifest, config
        self._task = TASKS[manifest.task](
            TaskSetting(
                tokenizer=tokenizer,
                buckets=manifest.buckets,
                max_inputs=self._max_inputs,
                max_characters=self._max_text_characters,
                label_names=config.label_names,
                score_function=config.score_function,
                normalize=manifest.normalize,
            )
        )
        self._start(model_dir, manifest)

    def parse(self, body: bytes) -> tuple[RowInput, ...]:
        return self._task.parse(body)

    def choose(self, waiting: Sequence[RowInput], most: int) -> Sequence[int]:
        return fitting(
            [
                -(-len(value.row) // _COLUMNS_PADDED_AT_MOST)
                if self._takes_any_length
                else value.bucket
                for value in waiting
            ],
            most,
            has_free_rows=not self._manifest.takes_partial_batches,
        )

    def predict(self, batch: Sequence[RowInput]) -> list[Any]:
        manifest = self._manifest
        rows = [value.row for value in batch]
        # If the graph takes any length, padding to the whole bucket would waste compute.
        columns = max(
            map(len, rows) if self._takes_any_length else (value.bucket for value in batch)
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
        outputs = self._compute(arrays)
        return [
            self._task.decode(value, {name: array[number] for name, array in outputs.items()})
            for number, value in enumerate(batch)
        ]

    def render(self, outputs: Sequence[Any]) -> bytes:
        return self._task.render(outputs)

    def renders_long(self, outputs: Sequence[Any]) -> bool:
        return self._task.values_to_render(outputs) > _MOST_VALUES_RENDERED_AT_ONCE


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


def check_manifest(
    manifest: Manifest,
    settings: EncoderSettings,
    max_batch_size: int,
    installed_versions: Mapping[str, str],
    pipeline_cores: int | None = None,
) -> None:
    """Checks that the graphs match the container's settings and run in its versions.

    On the CPU there are no cores, products are not cast, and a batch may be smaller than compiled.
    A sample therefore stands in for a model on any number of cores. A setting of None matches
    everything, and packages that are not installed are absent from `installed_versions`. Raises one
    `ModelLoadError` with every mismatch.
    """
    cores, dtype, rows = manifest.pipeline_cores, manifest.dtype, manifest.batch_size
    compared: list[tuple[str, object, str, object]] = [
        ("task", manifest.task, "TASK", settings.task),
        ("longest sequence", manifest.buckets[-1], "SEQUENCE_LENGTH", settings.sequence_length),
    ]
    if not manifest.takes_partial_batches or max_batch_size > rows:
        compared.append(("batch_size", rows, "MAX_BATCH_SIZE", max_batch_size))
    if manifest.target != CPU:
        compared.append(("pipeline_cores", cores, "PIPELINE_CORES", pipeline_cores))
        compared.append(("dtype", dtype, "DTYPE", settings.dtype))
    problems = [
        f"its {name} is {built}, and SLIPWAY_{variable} is {asked}"
        for name, built, variable, asked in compared
        if asked not in (None, built)
    ]
    required, _ = RUNTIME_PACKAGES[manifest.runtime]
    for package in manifest.packages:
        built_with, here = manifest.versions.get(package), installed_versions.get(package)
        if here is None and package in required:
            problems.append(f"it needs {package}, which is not installed here")
        elif here is not None and here != built_with:
            problems.append(
                f"it was made with {package} {built_with or 'of an unknown version'}, and this "
                f"container has {here}"
            )
    if problems:
        raise ModelLoadError(
            f"the model compiled for {manifest.target} cannot serve here: {'; '.join(problems)}; "
            f"{REMEDY}"
        )
