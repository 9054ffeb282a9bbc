"""One predictor being served: its threads, its state, and the path from body to answer."""

import asyncio
import enum
import time
from collections.abc import AsyncGenerator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeAlias

from containers.serving.batching import Batcher
from containers.serving.continuous import ContinuousBatcher
from containers.serving.errors import NotReadyError
from containers.serving.logs import log_info
from containers.serving.memory import MemoryGuard, ProcessMemory
from containers.serving.metrics import SIZE_BUCKETS, Metrics
from containers.serving.pending_requests import BatchedOutputs
from containers.serving.predictor import (
    ConcurrentPredictor,
    ModelLostError,
    Predictor,
    StepwisePredictor,
)
from containers.serving.queued_batcher import BatchLimits
from containers.serving.refusals import Refusals
from containers.serving.settings import ServingSettings

# Below this size a switch to another thread costs more than parsing. Above it, parsing on the event
# loop would delay every other request.
_PARSE_INLINE_MAX_BYTES: Final = 32 * 1024

# Most threads for the batches of a `ConcurrentPredictor`; they are started when needed.
_MOST_CONCURRENT_BATCHES: Final = 1024

# Any: the service passes a family's inputs and outputs on without reading them.
AnyPredictor: TypeAlias = (
    Predictor[Any, Any] | ConcurrentPredictor[Any, Any] | StepwisePredictor[Any, Any]
)


class ServiceState(enum.Enum):
    """The state of the service; it only moves forward."""

    LOADING = "loading"
    READY = "ready"
    DRAINING = "draining"


class InferenceService:
    """Loads a predictor and answers request bodies with it.

    It loads and computes on one thread of the service. A `ConcurrentPredictor` computes on several.
    """

    def __init__(
        self, predictor: AnyPredictor, settings: ServingSettings, metrics: Metrics | None = None
    ) -> None:
        self._predictor = predictor
        # Checked once, because checking a protocol takes as long as a small answer.
        self._concurrent = predictor if isinstance(predictor, ConcurrentPredictor) else None
        self._stepwise = predictor if isinstance(predictor, StepwisePredictor) else None
        self.metrics = metrics or Metrics()
        self._model_dir = settings.model_dir
        self._max_queue_length = settings.max_queue_length
        self._compute_executor = ThreadPoolExecutor(
            _MOST_CONCURRENT_BATCHES if self._concurrent else 1,
            thread_name_prefix="compute",
        )
        self._parse_executor = ThreadPoolExecutor(1, thread_name_prefix="parse")
        # Not beside large bodies, which would wait.
        self._long_parse_executor = ThreadPoolExecutor(1, thread_name_prefix="long-parse")
        self._render_executor = ThreadPoolExecutor(1, thread_name_prefix="render")
        self._batcher = self._new_batcher(settings)
        self._batching: asyncio.Task[None] | None = None
        self._is_loading = False
        self.state = ServiceState.LOADING
        self.requests_in_flight = 0
        self.refusals = Refusals()
        self._process_memory = ProcessMemory()
        self.memory_guard = MemoryGuard.of(
            self._process_memory,
            max_request_bytes=settings.max_request_bytes,
            max_buffered_bytes=settings.max_buffered_bytes,
        )
        self._add_gauges()

    @property
    def is_ready(self) -> bool:
        return self.state is ServiceState.READY

    @property
    def is_computing(self) -> bool:
        """Returns whether the compute thread is busy; it cannot be interrupted."""
        return self._is_loading or self._batcher.is_computing

    @property
    def queue_length(self) -> int:
        return self._batcher.queue_length

    async def load(self) -> None:
        """Loads the model on the compute thread and starts batching; may raise `ModelLoadError`."""
        started_at = time.monotonic()
        self._is_loading = True
        loading = asyncio.get_running_loop().run_in_executor(
            self._compute_executor, self._predictor.load, self._model_dir
        )
        loading.add_done_callback(self._loaded)
        await asyncio.shield(loading)
        self._batching = asyncio.create_task(self._batcher.run())
        if self.state is ServiceState.LOADING:
            self.state = ServiceState.READY
        log_info("model_loaded", milliseconds=round((time.monotonic() - started_at) * 1000, 1))

    async def until_lost(self) -> None:
        """Waits until a loaded model is lost, stops accepting and raises `ModelLostError`."""
        if self._batching is None:
            return
        ends: set[asyncio.Future[None]] = {self._batching}
        if self._concurrent:
            # The model may also be lost while no request is running.
            ends.add(asyncio.wrap_future(self._concurrent.lost))
        done, _ = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        try:
            for end in done:
                end.result()
        except ModelLostError:
            self.state = ServiceState.DRAINING
            raise

    def is_flooded(self) -> bool:
        """Returns whether the queue is full, and refusals have to wait; for the event loop."""
        return self.queue_length >= self._max_queue_length and self.refusals.are_too_many(
            asyncio.get_running_loop().time()
        )

    async def until_room(self, deadline: float) -> None:
        """Checks whether a request could be queued now; see `QueuedBatcher.until_room`."""
        await self._batcher.until_room(deadline)

    # Any: see AnyPredictor.
    async def parse(self, body: bytes) -> tuple[Any, ...]:
        """Returns the inputs of a request with this body, or raises a `ServingError`."""
        if self._batching is None:
            raise NotReadyError("The model is still loading.")
        if self._stepwise is not None and self._stepwise.parses_long(body):
            executor = self._long_parse_executor
        elif len(body) > _PARSE_INLINE_MAX_BYTES:
            executor = self._parse_executor
        else:
            return self._predictor.parse(body)
        return await asyncio.get_running_loop().run_in_executor(
            executor, self._predictor.parse, body
        )

    def is_streamed(self, inputs: Sequence[Any]) -> bool:
        return self._stepwise is not None and self._stepwise.is_streamed(inputs)

    async def answer(
        self, inputs: Sequence[Any], *, deadline: float
    ) -> tuple[bytes, BatchedOutputs[Any]]:
        """Returns the JSON answer to parsed inputs, and the measured cost of computing it.

        `deadline` is by the event loop's clock. Errors are those of `errors.ERROR_KINDS`.
        """
        batched = await self._batcher.submit(inputs, deadline=deadline)
        outputs = batched.outputs
        if self._concurrent is None or not self._concurrent.renders_long(outputs):
            return self._predictor.render(outputs), batched
        rendering = asyncio.get_running_loop().run_in_executor(
            self._render_executor, self._predictor.render, outputs
        )
        return await rendering, batched

    def stream(
        self, inputs: Sequence[Any], *, deadline: float
    ) -> AsyncGenerator[bytes | BatchedOutputs[Any], None]:
        """Yields the pieces of the answer, as events, then its cost; see `answer`."""
        if not isinstance(self._batcher, ContinuousBatcher):
            raise TypeError("this model does not compute in steps")
        return self._batcher.stream(inputs, deadline=deadline)

    async def close(self) -> None:
        """Stops batching and releases the threads; a batch that still computes is abandoned."""
        self.state = ServiceState.DRAINING
        if self._batching is not None:
            self._batching.cancel()
            await asyncio.wait([self._batching])
        if self._concurrent:
            await asyncio.to_thread(self._concurrent.close)
        for executor in (
            self._compute_executor,
            self._parse_executor,
            self._long_parse_executor,
            self._render_executor,
        ):
            executor.shutdown(wait=False, cancel_futures=True)
        self._process_memory.close()
        self.refusals.write()

    def _add_gauges(self) -> None:
        for name, description, read in (
            ("requests_in_flight", "Requests not answered yet.", lambda: self.requests_in_flight),
            ("queue_length", "Inputs that wait for a batch.", lambda: self.queue_length),
            ("batch_rows_in_use", "Rows that are computed now.", lambda: self._batcher.rows),
            (
                "buffered_bytes",
                "Bytes of bodies that are received or parsed.",
                lambda: self.memory_guard.buffered_bytes,
            ),
        ):
            self.metrics.gauge(f"slipway_{name}", description, read)

    def _loaded(self, loading: asyncio.Future[None]) -> None:
        self._is_loading = False
        if not loading.cancelled():
            loading.exception()  # marks the exception as retrieved

    def _new_batcher(
        self, settings: ServingSettings
    ) -> Batcher[Any, Any] | ContinuousBatcher[Any, Any]:
        limits = BatchLimits(
            max_batch_size=settings.max_batch_size,
            max_batch_delay_seconds=settings.max_batch_delay_milliseconds / 1000,
            max_queue_length=settings.max_queue_length,
        )
        executor = self._compute_executor
        record_rows = self.metrics.histogram(
            "slipway_batch_rows", "Rows of each step, or of each batch.", SIZE_BUCKETS
        )
        if isinstance(self._predictor, StepwisePredictor):
            return ContinuousBatcher(
                self._predictor, limits, executor=executor, record_rows=record_rows
            )
        return Batcher(self._predictor, limits, executor=executor, record_rows=record_rows)
