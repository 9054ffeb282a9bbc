"""One predictor being served: its threads, its state, and the way of a body to its answer."""

import asyncio
import enum
import logging
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from containers.serving.batching import BatchedOutputs, Batcher
from containers.serving.errors import NotReadyError
from containers.serving.logs import log_event
from containers.serving.predictor import Predictor
from containers.serving.settings import ServingSettings

_logger = logging.getLogger(__name__)

# Below this a hop to another thread costs more than parsing; above it, parsing on the event loop
# would delay every other request.
_PARSE_INLINE_MAX_BYTES: Final = 32 * 1024


class ServiceState(enum.Enum):
    """Where the service is in its life; it only moves forward."""

    LOADING = "loading"
    READY = "ready"
    DRAINING = "draining"


class InferenceService:
    """Loads a predictor and answers request bodies with it.

    Args:
        predictor: the model; `load` and `predict` are called on one thread of this service.
        settings: limits of batching and the model directory.
    """

    # Any: the service moves a family's inputs and outputs about without looking at them.
    def __init__(self, predictor: Predictor[Any, Any], settings: ServingSettings) -> None:
        self._predictor = predictor
        self._model_dir = settings.model_dir
        self._compute_executor = ThreadPoolExecutor(1, thread_name_prefix="compute")
        self._parse_executor = ThreadPoolExecutor(1, thread_name_prefix="parse")
        self._batcher: Batcher[Any, Any] = Batcher(
            predict=predictor.predict,
            executor=self._compute_executor,
            max_batch_size=settings.max_batch_size,
            max_batch_delay_seconds=settings.max_batch_delay_milliseconds / 1000,
            max_queue_length=settings.max_queue_length,
        )
        self._batching: asyncio.Task[None] | None = None
        self._is_loading = False
        self.state = ServiceState.LOADING
        self.requests_in_flight = 0

    @property
    def is_computing(self) -> bool:
        """Whether the compute thread is busy; it cannot be interrupted."""
        return self._is_loading or self._batcher.is_computing

    async def load(self) -> None:
        """Loads the model on the compute thread and starts batching.

        Raises:
            ModelLoadError: the model directory cannot be served.
        """
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
        log_event(
            _logger,
            logging.INFO,
            "model_loaded",
            milliseconds=round((time.monotonic() - started_at) * 1000, 1),
        )

    async def answer(self, body: bytes, *, deadline: float) -> tuple[bytes, BatchedOutputs[Any]]:
        """Returns the JSON answer to `body`, and what it cost.

        Args:
            body: the request's body.
            deadline: time of the event loop's clock, in seconds.

        Raises:
            ServingError: the request is answered with an error; see `errors.ERROR_KINDS`.
        """
        if self._batching is None:
            raise NotReadyError("The model is still loading.")
        if len(body) <= _PARSE_INLINE_MAX_BYTES:
            inputs = self._predictor.parse(body)
        else:
            inputs = await asyncio.get_running_loop().run_in_executor(
                self._parse_executor, self._predictor.parse, body
            )
        batched = await self._batcher.submit(inputs, deadline=deadline)
        return self._predictor.render(batched.outputs), batched

    async def close(self) -> None:
        """Stops batching and lets the threads go; a batch that still computes is abandoned."""
        self.state = ServiceState.DRAINING
        if self._batching is not None:
            self._batching.cancel()
            await asyncio.wait([self._batching])
        self._compute_executor.shutdown(wait=False, cancel_futures=True)
        self._parse_executor.shutdown(wait=False, cancel_futures=True)

    def _loaded(self, loading: asyncio.Future[None]) -> None:
        self._is_loading = False
        if not loading.cancelled():
            loading.exception()  # marks it as seen, where the waiting task was cancelled before
