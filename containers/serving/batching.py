"""Dynamic batching: decides which inputs the model computes together, and when.

Compute threads take inputs out of the queue in order of arrival, up to the maximum batch size. The
queue fills while a batch computes, and its content is the next batch as soon as a thread is free.
Under load, batches therefore grow by themselves, and an idle server computes a lone input at once.

A model with several devices computes several batches at a time, and may choose which inputs go
together; everything else is the same. It may also take batches ahead, which wait at a device for
the batch before them. Only full batches go ahead: in a part of a batch, the inputs that arrive in
the meantime would have had room.
"""

import asyncio
import time
from collections.abc import Sequence
from concurrent.futures import Executor
from itertools import chain, islice
from typing import Final, TypeVar

from containers.serving.metrics import Record, ignore
from containers.serving.pending_requests import Entry
from containers.serving.predictor import ConcurrentPredictor, ModelLostError, Predictor
from containers.serving.queued_batcher import BatchLimits, QueuedBatcher

# A predictor chooses among this many batches' worth of queued inputs.
_CHOICE_BATCHES: Final = 8

InputT = TypeVar("InputT")
OutputT = TypeVar("OutputT")


class Batcher(QueuedBatcher[InputT, OutputT]):
    """Joins inputs of requests into batches; a `ConcurrentPredictor` computes several at a time."""

    def __init__(
        self,
        predictor: Predictor[InputT, OutputT],
        limits: BatchLimits,
        *,
        executor: Executor,
        record_rows: Record = ignore,
    ) -> None:
        super().__init__(limits, executor=executor, record_rows=record_rows)
        self._predictor = predictor
        # Checked once, because checking a protocol takes as long as a small answer.
        self._several = predictor if isinstance(predictor, ConcurrentPredictor) else None
        self._concurrent_batches = 1
        # The batches inside `predict`, even if no request waits for them any more.
        self._computing: list[Sequence[Entry[InputT, OutputT]]] = []

    @property
    def is_computing(self) -> bool:
        return bool(self._computing)

    @property
    def rows(self) -> int:
        with self._changed:
            return sum(map(len, self._computing))

    def _computed_inputs(self) -> list[Entry[InputT, OutputT]]:
        return list(chain.from_iterable(self._computing))

    def _threads(self) -> int:
        if self._several is None:
            return 1
        self._concurrent_batches = self._several.concurrent_batches
        return self._concurrent_batches + self._several.batches_ahead

    def _work(self, loop: asyncio.AbstractEventLoop) -> None:
        while batch := self._next_batch():
            try:
                self._record_rows(len(batch))
                outputs = self._checked_predict([entry.value for entry in batch])
            except Exception as error:
                self._give_up(batch, error, loop)
                self._end(batch, completed=0)
                if isinstance(error, ModelLostError):
                    raise
            else:
                ended_at = self._end(batch, completed=len(batch))
                loop.call_soon_threadsafe(_deliver, batch, outputs, ended_at)

    def _next_batch(self) -> Sequence[Entry[InputT, OutputT]]:
        """Waits for the inputs of the next batch; returns none if no batch follows."""
        with self._changed:
            if not self._wait_for_work():
                return ()
            now = time.monotonic()
            if not self._computing:
                self._busy_since = now
            batch = self._take_batch()
            self._computing.append(batch)
            for entry in batch:
                entry.request.start(at=now, batch_size=len(batch))
            if self._queue:
                # What is left may be a batch for another thread.
                self._changed.notify()
            return batch

    def _is_wanted(self) -> bool:
        if not self._is_time_to_start(self._max_batch_size):
            return False
        # There are as many threads as batches, so a free thread means that one more may go ahead.
        return (
            len(self._computing) < self._concurrent_batches
            or len(self._chosen()) == self._max_batch_size
        )

    def _chosen(self) -> Sequence[int]:
        """Returns the places in the queue of the inputs that the model would compute next."""
        if self._several is None:
            return range(min(len(self._queue), self._max_batch_size))
        first = islice(self._queue, _CHOICE_BATCHES * self._max_batch_size)
        return self._several.choose([entry.value for entry in first], self._max_batch_size)

    def _take_batch(self) -> Sequence[Entry[InputT, OutputT]]:
        """Removes the chosen inputs from the queue; the others stay in order."""
        chosen = self._chosen()
        first = [self._queue.popleft() for _ in range(max(chosen) + 1)]
        passed_over = sorted(set(range(len(first))).difference(chosen), reverse=True)
        self._queue.extendleft(first[index] for index in passed_over)
        return [first[index] for index in chosen]

    def _end(self, batch: Sequence[Entry[InputT, OutputT]], *, completed: int) -> float:
        """Records the end of a batch, and how many outputs it gave; returns its time."""
        with self._changed:
            self._computing = [each for each in self._computing if each is not batch]
            now = time.monotonic()
            self._finished(len(batch), now)
            # Concurrent batches overlap, so each is timed from the end of the batch before it.
            if completed:
                self._record_speed(completed, now)
            self._busy_since = now
            return now

    def _checked_predict(self, values: Sequence[InputT]) -> Sequence[OutputT]:
        outputs = self._predictor.predict(values)
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
        entry.request.deliver(entry.index, output, at=ended_at)
