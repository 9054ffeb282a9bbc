"""Continuous batching: inputs join and leave the running batch between steps.

A short answer does not wait for the long answers beside it, and a new input does not wait for a
whole batch to end. One compute thread stays for the life of the model, and takes one step after
another by itself. Between two steps it takes new inputs out of the queue and drops the inputs whose
clients disconnected. It never waits for a turn of the event loop, which may have thousands of
connections to read. Inputs that arrive in one turn of the event loop are offered together.

There is one wait. When inputs finish, their clients are about to send their next requests. If the
first of these joined alone, the same clients would be split for ever into groups that begin at
different times. Each group would compute a beginning of its own. For at most the configured delay
after inputs finished, the batcher therefore waits for as many new inputs as finished. The other
inputs are computed meanwhile.
"""

import asyncio
import logging
import threading
import time
from collections.abc import AsyncGenerator, Hashable, Mapping, Sequence
from concurrent.futures import Executor
from typing import Generic, TypeVar

from containers.serving.errors import ModelFailureError, NotReadyError
from containers.serving.logs import log_event
from containers.serving.metrics import Record, ignore
from containers.serving.predictor import ModelLostError, StepResult, StepwisePredictor
from containers.serving.tickets import (
    BatchedOutputs,
    BoundedQueue,
    Entry,
    Ticket,
    expire,
    fail_all,
)

_logger = logging.getLogger(__name__)

InputT = TypeVar("InputT")
OutputT = TypeVar("OutputT")


class ContinuousBatcher(Generic[InputT, OutputT]):
    """Joins the inputs of concurrent requests in the batch of a stepwise predictor.

    Args:
        predictor: computes the steps; called on `executor`.
        executor: a pool of one thread, which `run` keeps busy.
        max_batch_size: most rows of the batch.
        max_batch_delay_seconds: longest wait for more inputs, straight after some finished.
        max_queue_length: most inputs waiting.
        record_rows: called on the executor with the number of rows that each step computes.
    """

    def __init__(
        self,
        *,
        predictor: StepwisePredictor[InputT, OutputT],
        executor: Executor,
        max_batch_size: int,
        max_batch_delay_seconds: float,
        max_queue_length: int,
        record_rows: Record = ignore,
    ) -> None:
        self._predictor = predictor
        self._executor = executor
        self._max_batch_size = max_batch_size
        self._max_batch_delay_seconds = max_batch_delay_seconds
        self._record_rows = record_rows
        self._queue: BoundedQueue[InputT, OutputT] = BoundedQueue(max_queue_length, self._has_work)
        # Guards all attributes below, as the queue's own.
        self._changed = self._queue.changed
        # The inputs in the batch, by the keys under which the predictor knows them.
        self._active: dict[Hashable, Entry[InputT, OutputT]] = {}
        self._rows = 0
        self._leaving: list[Hashable] = []
        self._is_computing = False
        self._is_ending = False
        self._expected = 0
        self._waits_until = float("-inf")
        self._busy_since = 0.0
        self._pieces_taken = threading.Event()
        self._pieces_taken.set()

    @property
    def queue_length(self) -> int:
        """Returns the number of inputs that wait to join the batch."""
        return len(self._queue)

    @property
    def is_computing(self) -> bool:
        """Returns whether the executor thread is inside the predictor."""
        return self._is_computing

    @property
    def rows(self) -> int:
        """Returns the number of rows that the inputs in the batch take."""
        return self._rows

    async def until_room(self, deadline: float) -> None:
        """Checks whether the queue has room for one input; see `submit`."""
        await self._queue.until_room(1, deadline=deadline, computing=lambda: len(self._active))

    async def submit(self, inputs: Sequence[InputT], *, deadline: float) -> BatchedOutputs[OutputT]:
        """Queues all `inputs` or none, and waits for their outputs.

        Cancelling the call, as when the client disconnects, removes the inputs from queue and
        batch.

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
        ticket = await self._add(inputs, deadline)
        expiry = asyncio.get_running_loop().call_at(deadline, expire, ticket)
        try:
            await ticket.future
        finally:
            expiry.cancel()
            self._withdraw(ticket)
        return ticket.result()

    async def stream(
        self, inputs: Sequence[InputT], *, deadline: float
    ) -> AsyncGenerator[bytes | BatchedOutputs[OutputT], None]:
        """Yields the pieces of an answer as they are computed, then the outputs; see `submit`.

        Closing the iterator removes the inputs that are not finished yet.
        """
        ticket = await self._add(inputs, deadline, is_streamed=True)
        expiry = asyncio.get_running_loop().call_at(deadline, expire, ticket)
        try:
            while ticket.pieces is not None and (piece := await ticket.pieces.get()) is not None:
                yield piece
            await ticket.future
            yield ticket.result()
        finally:
            expiry.cancel()
            self._withdraw(ticket)
            if ticket.future.done() and not ticket.future.cancelled():
                ticket.future.exception()  # marks the exception as retrieved

    async def run(self) -> None:
        """Computes until cancelled; then fails the requests that are not answered.

        Raises:
            ModelLostError: the predictor raised it.
        """
        loop = asyncio.get_running_loop()
        try:
            await asyncio.shield(loop.run_in_executor(self._executor, self._work, loop))
        finally:
            with self._changed:
                self._is_ending = True
                self._changed.notify()
                active = list(self._active.values())
            # `_deliver` would set it on the event loop's next turn, which may never come.
            self._pieces_taken.set()
            stopping = NotReadyError("The server is stopping.")
            fail_all(active, stopping)
            self._queue.close(stopping)

    async def _add(
        self, inputs: Sequence[InputT], deadline: float, *, is_streamed: bool = False
    ) -> Ticket[OutputT]:
        return await self._queue.enter(
            inputs,
            deadline=deadline,
            computing=lambda: len(self._active),
            is_streamed=is_streamed,
        )

    def _work(self, loop: asyncio.AbstractEventLoop) -> None:
        """Takes one step after another on the executor's thread.

        Raises:
            ModelLostError: the predictor raised it.
        """
        while self._wait_for_work():
            joining = self._admit()
            try:
                result = self._compute(joining)
            except Exception as error:
                self._predictor.clear()
                is_lost = isinstance(error, ModelLostError)
                self._give_up(error, loop, is_lost=is_lost)
                if is_lost:
                    raise
            else:
                self._hand_over(result, loop)

    def _wait_for_work(self) -> bool:
        """Waits until there is a step to take or an input to remove; False if none will follow."""
        with self._changed:
            self._is_computing = False
            while not self._is_ending:
                if self._has_work():
                    self._is_computing = True
                    return True
                # Inputs of the clients that got answers may come too late to be waited for.
                delay_ends_in = self._waits_until - time.monotonic()
                self._changed.wait(delay_ends_in if delay_ends_in > 0 else None)
            return False

    def _has_work(self) -> bool:
        return bool(self._active or self._leaving or self._is_time_to_join())

    def _is_time_to_join(self) -> bool:
        length = len(self._queue)
        expected = min(self._expected, self._max_batch_size - self._rows)
        return length > 0 and (length >= expected or time.monotonic() >= self._waits_until)

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
                entry = self._queue.take()
                # Entries compare by identity.
                joining[entry] = entry.value
                self._active[entry] = entry
                self._rows += self._predictor.rows(entry.value)
            for entry in self._active.values():
                entry.ticket.start(at=now, batch_size=len(self._active))
        return joining

    def _has_room(self) -> bool:
        """Returns whether the next input fits; an input larger than a whole batch runs alone."""
        if not len(self._queue):
            return False
        wanted = self._predictor.rows(self._queue.first())
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
        """Hands pieces and outputs to the event loop, and removes finished inputs."""
        if not result.pieces and not result.outputs:
            return
        with self._changed:
            now = time.monotonic()
            # An input whose request left during the step is not in the batch any more.
            pieces = [
                (entry, piece)
                for key, piece in result.pieces.items()
                if (entry := self._active.get(key)) and entry.ticket.pieces is not None
            ]
            outputs = [
                (entry, output)
                for key, output in result.outputs.items()
                if (entry := self._removed(key))
            ]
            if result.outputs:
                self._expected = len(result.outputs) + len(self._queue)
                self._waits_until = now + self._max_batch_delay_seconds
                self._queue.wait_estimate.record(
                    busy_seconds=now - self._busy_since, completed=len(result.outputs)
                )
                self._busy_since = now
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
        """Hands pieces and outputs to their requests, on the event loop."""
        self._pieces_taken.set()
        for entry, piece in pieces:
            entry.ticket.put_piece(piece)
        for entry, output in outputs:
            entry.ticket.deliver(entry.index, output, at=ended_at)

    def _give_up(self, error: Exception, loop: asyncio.AbstractEventLoop, *, is_lost: bool) -> None:
        """Empties the batch, and fails its requests.

        Args:
            error: for the log.
            loop: the event loop of the requests.
            is_lost: whether no step may follow.
        """
        with self._changed:
            was_ending, self._is_ending = self._is_ending, self._is_ending or is_lost
            failed = list(self._active.values())
            self._active.clear()
            self._leaving.clear()
            self._rows = 0
        if not was_ending:  # then nobody waits for the answers
            log_event(_logger, logging.ERROR, "batch_failed", error=error, batch_size=len(failed))
        failure = ModelFailureError("The model failed to compute an answer.")
        loop.call_soon_threadsafe(fail_all, failed, failure)

    def _removed(self, key: Hashable) -> Entry[InputT, OutputT] | None:
        """Removes an input from the batch and returns it; None if it is not there."""
        entry = self._active.pop(key, None)
        if entry is not None:
            self._rows -= self._predictor.rows(entry.value)
        return entry

    def _withdraw(self, ticket: Ticket[OutputT]) -> None:
        """Removes a request that ended early from queue and batch, so that it costs no compute."""
        if not ticket.missing:
            return
        self._queue.withdraw(ticket)
        with self._changed:
            left = [key for key, entry in self._active.items() if entry.ticket is ticket]
            for key in left:
                self._removed(key)
            self._leaving += left
            self._changed.notify()
