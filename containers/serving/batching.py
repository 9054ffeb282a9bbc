"""Dynamic batching: which inputs the model computes together, and when.

Requests put their inputs in one bounded queue; one task takes them out in order of arrival, up to
the maximum batch size, and computes them on the executor thread. While a batch computes the queue
fills, and what is there when the thread is free is the next batch: under load batches grow by
themselves, and an idle server computes a lone input at once.

There is one wait. Straight after a batch its clients are about to send their next request;
starting with the few inputs that are there would split the same clients into a small and a large
batch for ever. So for at most the configured delay after a batch ended, the next one waits for as
many inputs as were in flight at that moment.
"""

import asyncio
import functools
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import Generic, TypeVar

from containers.serving.errors import ModelFailureError, NotReadyError
from containers.serving.logs import log_event
from containers.serving.metrics import Record, ignore
from containers.serving.predictor import ModelLostError
from containers.serving.tickets import BatchedOutputs, BoundedQueue, Entry, expire, fail_all

_logger = logging.getLogger(__name__)

InputT = TypeVar("InputT")
OutputT = TypeVar("OutputT")


class Batcher(Generic[InputT, OutputT]):
    """Joins the inputs of concurrent requests into batches for one executor thread.

    Args:
        predict: computes one output per input, in order; called on `executor`.
        executor: a pool of one thread.
        max_batch_size: most inputs per call of `predict`.
        max_batch_delay_seconds: longest wait for more inputs, straight after a batch.
        max_queue_length: most inputs waiting.
        record_rows: told how many rows each call of `predict` computes.
    """

    def __init__(
        self,
        *,
        predict: Callable[[Sequence[InputT]], Sequence[OutputT]],
        executor: Executor,
        max_batch_size: int,
        max_batch_delay_seconds: float,
        max_queue_length: int,
        record_rows: Record = ignore,
    ) -> None:
        self._predict = predict
        self._executor = executor
        self._max_batch_size = max_batch_size
        self._max_batch_delay_seconds = max_batch_delay_seconds
        self._record_rows = record_rows
        self._queue: BoundedQueue[InputT, OutputT] = BoundedQueue(max_queue_length)
        self._last_batch_ended_at = float("-inf")
        self._expected_in_flight = 0
        self._is_computing = False
        self._computing: Sequence[Entry[InputT, OutputT]] = ()

    @property
    def queue_length(self) -> int:
        """Inputs waiting for a batch."""
        return len(self._queue)

    @property
    def is_computing(self) -> bool:
        """Whether the executor thread is inside `predict`."""
        return self._is_computing

    @property
    def rows(self) -> int:
        """Inputs that are computed now."""
        return len(self._computing)

    async def submit(self, inputs: Sequence[InputT], *, deadline: float) -> BatchedOutputs[OutputT]:
        """Queues all `inputs` or none, and waits for their outputs.

        Cancelling the call, as when the client went away, takes what is still queued out again.

        Args:
            inputs: what one request asks for, at least one.
            deadline: time of the event loop's clock, in seconds, after which nobody waits.

        Raises:
            InvalidRequestError: more inputs than the queue could ever hold.
            QueueFullError: more inputs than there is room or time for now.
            RequestExpiredError: the deadline passed.
            ModelFailureError: the predictor raised.
            NotReadyError: the batcher is stopping.
        """
        ticket = self._queue.add(inputs, deadline=deadline, computing=len(self._computing))
        expiry = asyncio.get_running_loop().call_at(deadline, expire, ticket)
        try:
            await ticket.future
        finally:
            expiry.cancel()
            if ticket.missing:
                self._queue.withdraw(ticket)
        return ticket.result()

    async def run(self) -> None:
        """Computes batches until cancelled; then fails the requests that still wait.

        Raises:
            ModelLostError: the predictor raised it.
        """
        try:
            while True:
                await self._wait_for_batch()
                await self._compute(self._take_batch())
        finally:
            self._queue.close(NotReadyError("The server is stopping."))

    async def _wait_for_batch(self) -> None:
        """Returns when the next batch should start; at least one input may then be queued."""
        loop = asyncio.get_running_loop()
        while not self._queue:
            self._queue.arrived.clear()
            await self._queue.arrived.wait()
        give_up_at = self._last_batch_ended_at + self._max_batch_delay_seconds
        target = min(self._expected_in_flight, self._max_batch_size)
        while len(self._queue) < target and loop.time() < give_up_at:
            self._queue.arrived.clear()
            try:
                async with asyncio.timeout_at(give_up_at):
                    await self._queue.arrived.wait()
            except TimeoutError:
                return

    def _take_batch(self) -> list[Entry[InputT, OutputT]]:
        size = min(len(self._queue), self._max_batch_size)
        return [self._queue.take() for _ in range(size)]

    async def _compute(self, batch: Sequence[Entry[InputT, OutputT]]) -> None:
        if not batch:  # every client went away while more were waited for
            return
        loop = asyncio.get_running_loop()
        started_at = loop.time()
        for entry in batch:
            entry.ticket.start(at=started_at, batch_size=len(batch))
        self._is_computing = True
        self._computing = batch
        self._record_rows(len(batch))
        future = loop.run_in_executor(
            self._executor, functools.partial(self._checked_predict, [e.value for e in batch])
        )
        # Stays true if this task is cancelled meanwhile: the thread goes on regardless.
        future.add_done_callback(self._computed)
        try:
            outputs = await asyncio.shield(future)
        except Exception as error:
            log_event(_logger, logging.ERROR, "batch_failed", error=error, batch_size=len(batch))
            fail_all(batch, ModelFailureError("The model failed to compute an answer."))
            if isinstance(error, ModelLostError):
                raise
            return
        except asyncio.CancelledError:
            fail_all(batch, NotReadyError("The server is stopping."))
            raise
        finally:
            self._computing = ()
            self._last_batch_ended_at = loop.time()
            self._expected_in_flight = len(batch) + len(self._queue)
        for entry, output in zip(batch, outputs, strict=True):
            entry.ticket.deliver(entry.index, output, at=self._last_batch_ended_at)
        self._queue.wait_estimate.record(
            busy_seconds=self._last_batch_ended_at - started_at, completed=len(batch)
        )

    def _checked_predict(self, values: Sequence[InputT]) -> Sequence[OutputT]:
        outputs = self._predict(values)
        if len(outputs) != len(values):
            raise RuntimeError(
                f"the predictor returned {len(outputs)} outputs for {len(values)} inputs"
            )
        return outputs

    def _computed(self, future: asyncio.Future[Sequence[OutputT]]) -> None:
        self._is_computing = False
        if not future.cancelled():
            future.exception()  # marks it as seen, where the task was cancelled before
