"""Continuous batching: inputs join and leave the running batch between steps.

A short answer does not wait for the long answers beside it, and a new input does not wait for a
whole batch to end. One compute thread takes one step after another. Between two steps it takes new
inputs out of the queue and drops the inputs whose clients disconnected.

The wait after inputs finished matters most here: if the first new input joined alone, each group of
clients would compute a beginning of its own. The other inputs are computed during the wait.
"""

import asyncio
import threading
import time
from collections.abc import AsyncGenerator, Collection, Hashable, Mapping, Sequence
from concurrent.futures import Executor
from typing import TypeVar

from containers.serving.metrics import Record, ignore
from containers.serving.pending_requests import BatchedOutputs, Entry, PendingRequest
from containers.serving.predictor import ModelLostError, StepResult, StepwisePredictor
from containers.serving.queued_batcher import BatchLimits, QueuedBatcher

InputT = TypeVar("InputT")
OutputT = TypeVar("OutputT")


class ContinuousBatcher(QueuedBatcher[InputT, OutputT]):
    """Joins the inputs of concurrent requests in the batch of a stepwise predictor."""

    def __init__(
        self,
        predictor: StepwisePredictor[InputT, OutputT],
        limits: BatchLimits,
        *,
        executor: Executor,
        record_rows: Record = ignore,
    ) -> None:
        super().__init__(limits, executor=executor, record_rows=record_rows)
        self._predictor = predictor
        # The inputs in the batch, by the keys under which the predictor knows them.
        self._active: dict[Hashable, Entry[InputT, OutputT]] = {}
        self._rows = 0
        self._leaving: list[Hashable] = []
        self._is_computing = False
        self._pieces_taken = threading.Event()
        self._pieces_taken.set()

    @property
    def is_computing(self) -> bool:
        return self._is_computing

    @property
    def rows(self) -> int:
        return self._rows

    async def stream(
        self, inputs: Sequence[InputT], *, deadline: float
    ) -> AsyncGenerator[bytes | BatchedOutputs[OutputT], None]:
        """Yields the pieces of an answer as they are computed, then the outputs; see `submit`.

        Closing the iterator removes the inputs that are not finished yet.
        """
        request = await self._enter(inputs, deadline, is_streamed=True)
        try:
            while request.pieces is not None and (piece := await request.pieces.get()) is not None:
                yield piece
            await request.future
            yield request.result()
        finally:
            self._leave(request)
            if request.future.done() and not request.future.cancelled():
                request.future.exception()  # marks the exception as retrieved

    async def run(self) -> None:
        try:
            await super().run()
        finally:
            # `_deliver` would set it on the event loop's next turn, which may never come.
            self._pieces_taken.set()

    def _threads(self) -> int:
        return 1

    def _computed_inputs(self) -> Collection[Entry[InputT, OutputT]]:
        return self._active.values()

    def _work(self, loop: asyncio.AbstractEventLoop) -> None:
        while self._has_step():
            joining = self._admit()
            try:
                result = self._compute(joining)
            except Exception as error:
                self._predictor.clear()
                self._give_up(self._emptied(), error, loop)
                if isinstance(error, ModelLostError):
                    raise
            else:
                self._hand_over(result, loop)

    def _has_step(self) -> bool:
        """Waits until there is a step to take or an input to remove; False if none will follow."""
        with self._changed:
            self._is_computing = False
            self._is_computing = self._wait_for_work()
            return self._is_computing

    def _is_wanted(self) -> bool:
        return bool(self._active or self._leaving or self._is_time_to_join())

    def _is_time_to_join(self) -> bool:
        return self._is_time_to_start(self._max_batch_size - self._rows)

    def _admit(self) -> dict[Hashable, InputT]:
        """Removes from the queue, and returns, the inputs that join the batch now."""
        joining: dict[Hashable, InputT] = {}
        with self._changed:
            now = time.monotonic()
            if not self._active:
                self._busy_since = now
            if not self._is_time_to_join():
                return joining
            while self._has_room():
                entry = self._queue.popleft()
                # Entries compare by identity.
                joining[entry] = entry.value
                self._active[entry] = entry
                self._rows += self._predictor.rows(entry.value)
            for entry in self._active.values():
                entry.request.start(at=now, batch_size=len(self._active))
        return joining

    def _has_room(self) -> bool:
        """Returns whether the next input fits; an input larger than a whole batch runs alone."""
        if not self._queue:
            return False
        wanted = self._predictor.rows(self._queue[0].value)
        return not self._rows or self._rows + wanted <= self._max_batch_size

    def _compute(self, joining: Mapping[Hashable, InputT]) -> StepResult[OutputT]:
        with self._changed:
            leaving, self._leaving = self._leaving, []
            rows = self._rows
        if leaving:
            self._predictor.leave(leaving)
        if joining:
            return self._predictor.join(joining)
        if not rows:
            return StepResult()
        self._record_rows(rows)
        return self._predictor.step()

    def _hand_over(self, result: StepResult[OutputT], loop: asyncio.AbstractEventLoop) -> None:
        if not result.pieces and not result.outputs:
            return
        with self._changed:
            now = time.monotonic()
            # An input whose request left during the step is not in the batch any more.
            pieces = [
                (entry, piece)
                for key, piece in result.pieces.items()
                if (entry := self._active.get(key)) and entry.request.pieces is not None
            ]
            outputs = [
                (entry, output)
                for key, output in result.outputs.items()
                if (entry := self._removed(key))
            ]
            if result.outputs:
                self._finished(len(result.outputs), now)
                self._record_speed(len(result.outputs), now)
        if pieces:
            # A model whose steps cost less than sending their pieces would outrun the event loop.
            self._pieces_taken.wait()
            self._pieces_taken.clear()
        if pieces or outputs:
            loop.call_soon_threadsafe(self._deliver, pieces, outputs, now)

    def _deliver(
        self,
        pieces: Sequence[tuple[Entry[InputT, OutputT], bytes]],
        outputs: Sequence[tuple[Entry[InputT, OutputT], OutputT]],
        ended_at: float,
    ) -> None:
        self._pieces_taken.set()
        for entry, piece in pieces:
            entry.request.put_piece(piece)
        for entry, output in outputs:
            entry.request.deliver(entry.index, output, at=ended_at)

    def _emptied(self) -> Sequence[Entry[InputT, OutputT]]:
        with self._changed:
            failed = list(self._active.values())
            self._active.clear()
            self._leaving.clear()
            self._rows = 0
        return failed

    def _removed(self, key: Hashable) -> Entry[InputT, OutputT] | None:
        entry = self._active.pop(key, None)
        if entry is not None:
            self._rows -= self._predictor.rows(entry.value)
        return entry

    def _leave(self, request: PendingRequest[OutputT]) -> None:
        super()._leave(request)
        if not request.missing:
            return
        with self._changed:
            left = [key for key, entry in self._active.items() if entry.request is request]
            for key in left:
                self._removed(key)
            self._leaving += left
            self._changed.notify()
