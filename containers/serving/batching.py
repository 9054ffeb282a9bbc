"""Dynamic batching: decides which inputs the model computes together, and when.

Requests put their inputs in one bounded queue. Compute threads take them out in order of arrival,
up to the maximum batch size. The queue fills while a batch computes, and its content is the next
batch as soon as a thread is free. Under load, batches therefore grow by themselves, and an idle
server computes a lone input at once.

The threads stay for the life of the model. A thread that ends a batch takes the next one by itself.
It never waits for a turn of the event loop, which may have thousands of connections to read. Inputs
that arrive in one turn of the event loop are offered together.

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
import logging
import time
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
    """Joins the inputs of concurrent requests into batches for compute threads.

    Args:
        predict: computes one output per input, in order; called on `executor`.
        executor: a pool with one thread for each batch, computed or ahead; `run` keeps them busy.
        max_batch_size: most inputs per call of `predict`.
        max_batch_delay_seconds: longest wait for more inputs, straight after a batch.
        max_queue_length: most inputs waiting.
        record_rows: called on `executor` with the number of rows that each call of `predict`
            computes.
        concurrent_batches: returns how many batches are computed at a time; read by `run`.
        batches_ahead: returns how many full batches may wait at the devices beside them; read by
            `run`.
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
        self._read_concurrent_batches = concurrent_batches
        self._read_batches_ahead = batches_ahead
        self._choose = choose
        self._queue: BoundedQueue[InputT, OutputT] = BoundedQueue(max_queue_length, self._is_wanted)
        # Guards all attributes below, as the queue's own.
        self._changed = self._queue.changed
        self._concurrent_batches = 1
        self._last_batch_ended_at = float("-inf")
        self._expected_in_flight = 0
        # The batches inside `predict`, even if no request waits for them any more.
        self._computing: list[Sequence[Entry[InputT, OutputT]]] = []
        self._busy_since = float("-inf")
        self._is_ending = False

    @property
    def queue_length(self) -> int:
        """Returns the number of inputs that wait for a batch."""
        return len(self._queue)

    @property
    def is_computing(self) -> bool:
        """Returns whether a compute thread is inside `predict`."""
        return bool(self._computing)

    @property
    def rows(self) -> int:
        """Returns the number of inputs that are being computed."""
        with self._changed:
            return sum(map(len, self._computing))

    async def until_room(self, deadline: float) -> None:
        """Checks whether the queue has room for one input; see `submit`."""
        await self._queue.until_room(1, deadline=deadline, computing=lambda: self.rows)

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
        loop = asyncio.get_running_loop()
        self._concurrent_batches = self._read_concurrent_batches()
        threads = self._concurrent_batches + self._read_batches_ahead()
        try:
            await asyncio.gather(
                *(loop.run_in_executor(self._executor, self._work, loop) for _ in range(threads))
            )
        finally:
            with self._changed:
                self._is_ending = True
                self._changed.notify_all()
                computing = list(self._computing)
            # The threads go on until their batches are computed.
            stopping = NotReadyError("The server is stopping.")
            for batch in computing:
                fail_all(batch, stopping)
            self._queue.close(stopping)

    def _work(self, loop: asyncio.AbstractEventLoop) -> None:
        """Computes one batch after the other on a thread of the executor.

        Raises:
            ModelLostError: the predictor raised it.
        """
        while batch := self._next_batch():
            try:
                self._record_rows(len(batch))
                outputs = self._checked_predict([entry.value for entry in batch])
            except Exception as error:
                if not self._is_ending:  # then nobody waits for the outputs
                    log_event(
                        _logger, logging.ERROR, "batch_failed", error=error, batch_size=len(batch)
                    )
                is_lost = isinstance(error, ModelLostError)
                self._end(batch, completed=0, is_lost=is_lost)
                failure = ModelFailureError("The model failed to compute an answer.")
                loop.call_soon_threadsafe(fail_all, batch, failure)
                if is_lost:
                    raise
            else:
                ended_at = self._end(batch, completed=len(batch))
                loop.call_soon_threadsafe(_deliver, batch, outputs, ended_at)

    def _next_batch(self) -> Sequence[Entry[InputT, OutputT]]:
        """Waits for the inputs of the next batch; returns none if no batch follows."""
        with self._changed:
            while not self._is_ending:
                if self._is_wanted():
                    return self._start()
                # Inputs of the last batch's clients may come too late to be waited for.
                delay_ends_in = self._delay_ends_at - time.monotonic()
                self._changed.wait(delay_ends_in if delay_ends_in > 0 else None)
            return ()

    @property
    def _delay_ends_at(self) -> float:
        return self._last_batch_ended_at + self._max_batch_delay_seconds

    def _is_wanted(self) -> bool:
        """Returns whether the next batch should start now."""
        length = len(self._queue)
        if not length:
            return False
        expected = min(self._expected_in_flight, self._max_batch_size)
        if length < expected and time.monotonic() < self._delay_ends_at:
            return False
        return len(self._computing) < self._concurrent_batches or self._may_go_ahead()

    def _may_go_ahead(self) -> bool:
        # There are as many threads as batches, so a free thread means that one more may go.
        if len(self._queue) < self._max_batch_size:
            return False
        return self._choose is None or len(self._chosen(self._choose)) == self._max_batch_size

    def _chosen(self, choose: Callable[[Sequence[InputT], int], Sequence[int]]) -> Sequence[int]:
        """Returns the places in the queue of the inputs that the model would compute next."""
        waiting = self._queue.waiting(_CHOICE_BATCHES * self._max_batch_size)
        return choose(waiting, self._max_batch_size)

    def _start(self) -> Sequence[Entry[InputT, OutputT]]:
        """Removes from the queue, and returns, the inputs of the next batch."""
        now = time.monotonic()
        if not self._computing:
            self._busy_since = now
        batch = self._take_batch()
        self._computing.append(batch)
        for entry in batch:
            entry.ticket.start(at=now, batch_size=len(batch))
        if len(self._queue):
            # What is left may be a batch for another thread.
            self._changed.notify()
        return batch

    def _take_batch(self) -> list[Entry[InputT, OutputT]]:
        size = min(len(self._queue), self._max_batch_size)
        if self._choose is None:
            return [self._queue.take() for _ in range(size)]
        return self._queue.take_chosen(self._chosen(self._choose))

    def _end(
        self, batch: Sequence[Entry[InputT, OutputT]], *, completed: int, is_lost: bool = False
    ) -> float:
        """Records the end of a batch; returns its time.

        Args:
            batch: the inputs.
            completed: number of outputs.
            is_lost: whether no other batch may start.
        """
        with self._changed:
            self._is_ending |= is_lost
            self._computing = [each for each in self._computing if each is not batch]
            now = time.monotonic()
            busy_since, self._busy_since, self._last_batch_ended_at = self._busy_since, now, now
            self._expected_in_flight = len(batch) + len(self._queue)
            if completed:
                # Concurrent batches overlap, so each is timed from the end of the batch before it.
                self._queue.wait_estimate.record(busy_seconds=now - busy_since, completed=completed)
            return now

    def _checked_predict(self, values: Sequence[InputT]) -> Sequence[OutputT]:
        outputs = self._predict(values)
        if len(outputs) != len(values):
            raise RuntimeError(
                f"the predictor returned {len(outputs)} outputs for {len(values)} inputs"
            )
        return outputs


def _deliver(
    batch: Sequence[Entry[InputT, OutputT]], outputs: Sequence[OutputT], ended_at: float
) -> None:
    """Hands the outputs of a batch to the requests, on the event loop."""
    for entry, output in zip(batch, outputs, strict=True):
        entry.ticket.deliver(entry.index, output, at=ended_at)
