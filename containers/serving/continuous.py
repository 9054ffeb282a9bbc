"""Continuous batching: inputs join and leave the running batch between steps.

A short answer does not wait for the long answers beside it, and a new input does not wait for a
whole batch to end. The compute thread takes one step after another by itself. It returns to the
event loop in three cases: an input is finished, an input arrived that has room, or a client
disconnected.

There is one wait. When inputs finish, their clients are about to send their next requests. If the
first of these joined alone, the same clients would be split for ever into groups that begin at
different times. Each group would compute a beginning of its own. For at most the configured delay
after inputs finished, the batcher therefore waits for as many new inputs as finished. The other
inputs are computed meanwhile.
"""

import asyncio
import functools
import logging
import threading
from collections.abc import AsyncGenerator, Hashable, Mapping, Sequence
from concurrent.futures import Executor
from typing import Any, Generic, TypeVar

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
        executor: a pool of one thread.
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
        self._queue: BoundedQueue[InputT, OutputT] = BoundedQueue(max_queue_length)
        # The inputs in the batch, by the keys under which the predictor knows them.
        self._active: dict[Hashable, Entry[InputT, OutputT]] = {}
        self._leaving: list[Hashable] = []
        # The event loop writes this flag, and the compute thread reads it after every step. A plain
        # bool is enough, since reading it late costs only one step.
        self._is_wanted = False
        self._is_computing = False
        self._pieces_taken = threading.Event()
        self._pieces_taken.set()
        self._expected = 0
        self._waits_until = float("-inf")

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
        return sum(self._predictor.rows(entry.value) for entry in self._active.values())

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
        ticket = await self._add(inputs, deadline)
        pieces = ticket.pieces = asyncio.Queue()
        expiry = asyncio.get_running_loop().call_at(deadline, expire, ticket)
        try:
            while (piece := await pieces.get()) is not None:
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
        try:
            while True:
                await self._wait_for_work()
                await self._compute(self._admit())
        finally:
            self._is_wanted = True
            # `_deliver_pieces` would set it on the event loop's next turn, which may never come.
            self._pieces_taken.set()
            stopping = NotReadyError("The server is stopping.")
            fail_all(self._active.values(), stopping)
            self._queue.close(stopping)

    async def _add(self, inputs: Sequence[InputT], deadline: float) -> Ticket[OutputT]:
        ticket = await self._queue.enter(
            inputs, deadline=deadline, computing=lambda: len(self._active)
        )
        self._is_wanted |= self._has_room()
        return ticket

    async def _wait_for_work(self) -> None:
        """Returns when inputs can be computed or must be removed."""
        loop = asyncio.get_running_loop()
        while not (self._active or self._leaving or self._is_time_to_join(loop.time())):
            self._queue.arrived.clear()
            give_up_at = self._waits_until if len(self._queue) else None
            try:
                async with asyncio.timeout_at(give_up_at):
                    await self._queue.arrived.wait()
            except TimeoutError:
                continue

    def _is_time_to_join(self, now: float) -> bool:
        expected = min(self._expected, self._max_batch_size - self.rows)
        return len(self._queue) > 0 and (len(self._queue) >= expected or now >= self._waits_until)

    def _admit(self) -> dict[Hashable, Entry[InputT, OutputT]]:
        """Removes from the queue, and returns, the inputs that join the batch now."""
        now = asyncio.get_running_loop().time()
        joining: dict[Hashable, Entry[InputT, OutputT]] = {}
        if not self._is_time_to_join(now):
            return joining
        while self._has_room():
            entry = self._queue.take()
            # Entries compare by identity.
            joining[entry] = entry
            self._active[entry] = entry
        for entry in self._active.values():
            entry.ticket.start(at=now, batch_size=len(self._active))
        return joining

    async def _compute(self, joining: Mapping[Hashable, Entry[InputT, OutputT]]) -> None:
        """Takes steps until an input is finished or the event loop has work to do."""
        leaving, self._leaving = self._leaving, []
        if not self._active and not leaving:
            return
        loop = asyncio.get_running_loop()
        started_at = loop.time()
        self._is_wanted = False
        if self._has_room():  # the wait for more inputs is no longer than that
            loop.call_at(self._waits_until, self._want)
        self._is_computing = True
        future = loop.run_in_executor(
            self._executor,
            functools.partial(
                self._take_steps,
                {key: entry.value for key, entry in joining.items()},
                leaving,
                self.rows,
                loop,
            ),
        )
        # Stays true if this task is cancelled meanwhile: the thread goes on regardless.
        future.add_done_callback(self._computed)
        try:
            outputs = await asyncio.shield(future)
        except Exception as error:
            failed = list(self._active.values())
            log_event(_logger, logging.ERROR, "batch_failed", error=error, batch_size=len(failed))
            self._active.clear()
            fail_all(failed, ModelFailureError("The model failed to compute an answer."))
            if isinstance(error, ModelLostError):
                raise
            return
        now = loop.time()
        for key, output in outputs.items():
            # An input whose request left during the last step is not in the batch any more.
            if entry := self._active.pop(key, None):
                entry.ticket.deliver(entry.index, output, at=now)
        if outputs:
            self._expected = len(outputs) + len(self._queue)
            self._waits_until = now + self._max_batch_delay_seconds
        self._queue.wait_estimate.record(busy_seconds=now - started_at, completed=len(outputs))

    def _take_steps(
        self,
        joining: Mapping[Hashable, InputT],
        leaving: Sequence[Hashable],
        rows: int,
        loop: asyncio.AbstractEventLoop,
    ) -> Mapping[Hashable, OutputT]:
        """Runs steps on the executor's thread; returns the outputs of the finished inputs."""
        try:
            if leaving:
                self._predictor.leave(leaving)
            if not rows:
                return {}
            result = self._predictor.join(joining) if joining else self._step(rows)
            while True:
                if result.pieces:
                    self._pieces_taken.wait()
                    self._pieces_taken.clear()
                    loop.call_soon_threadsafe(self._deliver_pieces, result.pieces)
                if result.outputs or self._is_wanted:
                    return result.outputs
                result = self._step(rows)
        except Exception:
            self._predictor.clear()
            raise

    def _step(self, rows: int) -> StepResult[OutputT]:
        self._record_rows(rows)
        return self._predictor.step()

    def _deliver_pieces(self, pieces: Mapping[Hashable, bytes]) -> None:
        self._pieces_taken.set()
        for key, piece in pieces.items():
            if entry := self._active.get(key):
                entry.ticket.put_piece(piece)

    def _want(self) -> None:
        self._is_wanted = True

    def _withdraw(self, ticket: Ticket[OutputT]) -> None:
        """Removes a request that ended early from queue and batch, so that it costs no compute."""
        if not ticket.missing:
            return
        self._queue.withdraw(ticket)
        left = [key for key, entry in self._active.items() if entry.ticket is ticket]
        for key in left:
            del self._active[key]
        self._leaving += left
        self._is_wanted |= bool(left)
        self._queue.arrived.set()

    def _has_room(self) -> bool:
        """Returns whether the next input fits; an input larger than a whole batch runs alone."""
        if not len(self._queue):
            return False
        rows = self.rows
        return not rows or rows + self._predictor.rows(self._queue.first()) <= self._max_batch_size

    def _computed(self, future: asyncio.Future[Any]) -> None:
        self._is_computing = False
        if not future.cancelled():
            future.exception()  # marks the exception as retrieved
