"""Dynamic batching: decides which inputs the model computes together, and when.

Requests put their inputs in one bounded queue. One task takes them out in order of arrival, up to
the maximum batch size, and computes them on an executor thread. The queue fills while a batch
computes, and its content is the next batch as soon as a thread is free. Under load, batches
therefore grow by themselves, and an idle server computes a lone input at once.

There is one wait. Straight after a batch, its clients are about to send their next requests.
Starting with the few inputs that are queued would split the same clients into a small and a large
batch for ever. The next batch therefore waits for as many inputs as were in that batch and in the
queue when it ended. It waits for at most the configured delay.

A model with several devices computes several batches at a time, and may choose which inputs go
together; everything else is the same. It may also take batches ahead, which wait at a device for
the batch before them. Only full batches go ahead: in a part of a batch, the inputs that arrive in
the meantime would have had room.
"""

import asyncio
import functools
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import Final, Generic, TypeVar

from containers.serving.errors import ModelFailureError, NotReadyError
from containers.serving.logs import log_event
from containers.serving.metrics import Record, ignore
from containers.serving.predictor import ModelLostError
from containers.serving.tickets import BatchedOutputs, BoundedQueue, Entry, expire, fail_all

_logger = logging.getLogger(__name__)

# A predictor chooses among this many batches' worth of queued inputs.
_CHOICE_BATCHES: Final = 8

InputT = TypeVar("InputT")
OutputT = TypeVar("OutputT")


class Batcher(Generic[InputT, OutputT]):
    """Joins the inputs of concurrent requests into batches for executor threads.

    Args:
        predict: computes one output per input, in order; called on `executor`.
        executor: a pool with one thread for each concurrent batch.
        max_batch_size: most inputs per call of `predict`.
        max_batch_delay_seconds: longest wait for more inputs, straight after a batch.
        max_queue_length: most inputs waiting.
        record_rows: called with the number of rows that each call of `predict` computes.
        concurrent_batches: returns how many batches are computed at a time.
        batches_ahead: returns how many full batches may wait at the devices beside them.
        choose: returns which of the waiting inputs are computed together, see
            `ConcurrentPredictor.choose`; None takes them in order.
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
        concurrent_batches: Callable[[], int] = lambda: 1,
        batches_ahead: Callable[[], int] = lambda: 0,
        choose: Callable[[Sequence[InputT], int], Sequence[int]] | None = None,
    ) -> None:
        self._predict = predict
        self._executor = executor
        self._max_batch_size = max_batch_size
        self._max_batch_delay_seconds = max_batch_delay_seconds
        self._record_rows = record_rows
        self._concurrent_batches = concurrent_batches
        self._batches_ahead = batches_ahead
        self._choose = choose
        self._queue: BoundedQueue[InputT, OutputT] = BoundedQueue(max_queue_length)
        self._last_batch_ended_at = float("-inf")
        self._expected_in_flight = 0
        # Calls of `predict` that have not returned, even if no request waits for them any more.
        self._calls = 0
        self._computing: dict[asyncio.Task[None], Sequence[Entry[InputT, OutputT]]] = {}
        self._busy_since = float("-inf")
        self._lost: BaseException | None = None

    @property
    def queue_length(self) -> int:
        """Returns the number of inputs that wait for a batch."""
        return len(self._queue)

    @property
    def is_computing(self) -> bool:
        """Returns whether an executor thread is inside `predict`."""
        return self._calls > 0

    @property
    def rows(self) -> int:
        """Returns the number of inputs that are being computed."""
        return sum(map(len, self._computing.values()))

    async def submit(self, inputs: Sequence[InputT], *, deadline: float) -> BatchedOutputs[OutputT]:
        """Queues all `inputs` or none, and waits for their outputs.

        Cancelling the call, as when the client disconnects, removes inputs that are still queued.

        Args:
            inputs: all inputs of one request, at least one.
            deadline: time of the event loop's clock, in seconds, after which the request fails.

        Raises:
            InvalidRequestError: there are more inputs than the queue can ever hold.
            QueueFullError: the queue has no room for the inputs now, or they would miss the
                deadline.
            RequestExpiredError: the deadline passed.
            ModelFailureError: the predictor raised.
            NotReadyError: the batcher is stopping.
        """
        ticket = await self._queue.enter(inputs, deadline=deadline, computing=lambda: self.rows)
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
                await self._wait_for_room()
                await self._wait_for_batch()
                self._start(self._take_batch())
        finally:
            batches = list(self._computing)
            for batch in batches:
                batch.cancel()
            await asyncio.gather(*batches, return_exceptions=True)
            self._queue.close(NotReadyError("The server is stopping."))

    async def _wait_for_room(self) -> None:
        """Returns when another batch may be computed, or a full batch may go ahead.

        Raises:
            ModelLostError: a batch raised it.
        """
        self._raise_if_lost()
        while len(self._computing) >= self._concurrent_batches() and not self._may_go_ahead():
            await self._wait_for_change()

    def _may_go_ahead(self) -> bool:
        most = self._concurrent_batches() + self._batches_ahead()
        if len(self._computing) >= most or len(self._queue) < self._max_batch_size:
            return False
        return self._choose is None or len(self._chosen(self._choose)) == self._max_batch_size

    def _chosen(self, choose: Callable[[Sequence[InputT], int], Sequence[int]]) -> Sequence[int]:
        """Returns the places in the queue of the inputs that the model would compute next."""
        waiting = self._queue.waiting(_CHOICE_BATCHES * self._max_batch_size)
        return choose(waiting, self._max_batch_size)

    async def _wait_for_batch(self) -> None:
        """Returns when the next batch should start; at least one input may then be queued.

        Raises:
            ModelLostError: a batch raised it.
        """
        loop = asyncio.get_running_loop()
        while not self._queue:
            await self._wait_for_change()
        give_up_at = self._last_batch_ended_at + self._max_batch_delay_seconds
        target = min(self._expected_in_flight, self._max_batch_size)
        while len(self._queue) < target and loop.time() < give_up_at:
            try:
                async with asyncio.timeout_at(give_up_at):
                    await self._wait_for_change()
            except TimeoutError:
                return

    async def _wait_for_change(self) -> None:
        """Returns when an input arrived or a batch ended."""
        # Read before the event is cleared, because the event may stand for a batch that failed.
        self._raise_if_lost()
        self._queue.arrived.clear()
        await self._queue.arrived.wait()
        self._raise_if_lost()

    def _raise_if_lost(self) -> None:
        if self._lost is not None:
            raise self._lost

    def _take_batch(self) -> list[Entry[InputT, OutputT]]:
        size = min(len(self._queue), self._max_batch_size)
        if self._choose is None or not size:
            return [self._queue.take() for _ in range(size)]
        return self._queue.take_chosen(self._chosen(self._choose))

    def _start(self, batch: Sequence[Entry[InputT, OutputT]]) -> None:
        if not batch:  # every client disconnected while the batcher waited for more inputs
            return
        if not self._computing:
            self._busy_since = asyncio.get_running_loop().time()
        task = asyncio.create_task(self._compute(batch))
        self._computing[task] = batch
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        del self._computing[task]
        if not task.cancelled():
            self._lost = self._lost or task.exception()
        self._queue.arrived.set()

    async def _compute(self, batch: Sequence[Entry[InputT, OutputT]]) -> None:
        loop = asyncio.get_running_loop()
        started_at = loop.time()
        for entry in batch:
            entry.ticket.start(at=started_at, batch_size=len(batch))
        self._calls += 1
        self._record_rows(len(batch))
        future = loop.run_in_executor(
            self._executor, functools.partial(self._checked_predict, [e.value for e in batch])
        )
        # Counted until the thread returns, even if this task is cancelled: the thread goes on
        # regardless.
        future.add_done_callback(self._returned)
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
            busy_since, self._busy_since = self._busy_since, loop.time()
            self._last_batch_ended_at = self._busy_since
            self._expected_in_flight = len(batch) + len(self._queue)
        for entry, output in zip(batch, outputs, strict=True):
            entry.ticket.deliver(entry.index, output, at=self._last_batch_ended_at)
        # Concurrent batches overlap, so each is timed from the end of the batch before it.
        self._queue.wait_estimate.record(
            busy_seconds=self._last_batch_ended_at - busy_since, completed=len(batch)
        )

    def _checked_predict(self, values: Sequence[InputT]) -> Sequence[OutputT]:
        outputs = self._predict(values)
        if len(outputs) != len(values):
            raise RuntimeError(
                f"the predictor returned {len(outputs)} outputs for {len(values)} inputs"
            )
        return outputs

    def _returned(self, future: asyncio.Future[Sequence[OutputT]]) -> None:
        self._calls -= 1
        if not future.cancelled():
            future.exception()  # marks the exception as retrieved
