"""The queue between requests and compute threads, which both kinds of batchers have.

The event loop adds the inputs of a request, all of them or none. Compute threads stay for the life
of the model, and take inputs out of the queue by themselves. They never wait for a turn of the
event loop, which may have thousands of connections to read. Inputs that arrive in one turn of the
event loop are offered together.

There is one wait. When inputs finish, their clients are about to send their next requests. Starting
with the few inputs that are queued would split the same clients for ever into groups that begin at
different times. For at most the configured delay after inputs finished, a batcher therefore waits
for as many inputs as finished and were queued then.
"""

import asyncio
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Collection, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from containers.serving.errors import (
    InvalidRequestError,
    ModelFailureError,
    NotReadyError,
    QueueFullError,
)
from containers.serving.logs import log_error
from containers.serving.metrics import Record, ignore
from containers.serving.pending_requests import (
    BatchedOutputs,
    Entry,
    PendingRequest,
    expire,
    fail_all,
)
from containers.serving.predictor import ModelLostError

InputT = TypeVar("InputT")
OutputT = TypeVar("OutputT")

# Reading the end of a connection, cancelling its request and withdrawing it take a turn each.
_TURNS_BEFORE_REFUSAL: Final = 3
# With fewer measurements, the first requests of a process would decide the estimate.
_LEAST_COMPLETIONS: Final = 16
# Weight of an input after the next one completed: the last few dozen inputs decide.
_DECAY: Final = 0.97


@dataclass(frozen=True)
class BatchLimits:
    """The limits of a batcher.

    `max_batch_size` counts rows, and `max_queue_length` the inputs that wait.
    `max_batch_delay_seconds` is the longest wait for more inputs, straight after some finished.
    """

    max_batch_size: int
    max_batch_delay_seconds: float
    max_queue_length: int


class WaitEstimate:
    """The time that the model takes per input while it is busy, alone or in a batch."""

    def __init__(self) -> None:
        self._busy_seconds = 0.0
        self._completed = 0.0
        self._completions = 0

    def record(self, *, busy_seconds: float, completed: int) -> None:
        """Records a period in which the model was busy, and the inputs finished by its end."""
        decay = _DECAY**completed
        self._busy_seconds = self._busy_seconds * decay + busy_seconds
        self._completed = self._completed * decay + completed
        self._completions += completed

    def seconds(self, inputs: int) -> float:
        """Returns how long that many inputs will take; 0 while there are too few measurements."""
        if self._completions < _LEAST_COMPLETIONS:
            return 0.0
        return inputs * self._busy_seconds / self._completed


class QueuedBatcher(ABC, Generic[InputT, OutputT]):
    """Queues the inputs of requests, and hands their outputs back.

    `run` keeps the threads of `executor` busy. `record_rows` is called there with the rows of each
    computation.
    """

    def __init__(
        self, limits: BatchLimits, *, executor: Executor, record_rows: Record = ignore
    ) -> None:
        self._executor = executor
        self._max_batch_size = limits.max_batch_size
        self._max_batch_delay_seconds = limits.max_batch_delay_seconds
        self._max_queue_length = limits.max_queue_length
        self._record_rows = record_rows
        self._is_telling = False
        # Guards what follows and what a batcher adds. A thread that holds it can enter it again.
        self._changed = threading.Condition()
        self._queue: deque[Entry[InputT, OutputT]] = deque()
        self._is_ending = False
        self._wait_estimate = WaitEstimate()
        self._busy_since = float("-inf")
        self._delay_ends_at = float("-inf")
        self._expected = 0

    @property
    def queue_length(self) -> int:
        return len(self._queue)

    @property
    @abstractmethod
    def is_computing(self) -> bool:
        """Returns whether a compute thread is inside the predictor."""

    @property
    @abstractmethod
    def rows(self) -> int:
        """Returns the number of rows that are computed."""

    @abstractmethod
    def _threads(self) -> int:
        """Returns the number of compute threads; called once, after the model is loaded."""

    @abstractmethod
    def _work(self, loop: asyncio.AbstractEventLoop) -> None:
        """Computes on a thread of the executor while `_wait_for_work` says so."""

    @abstractmethod
    def _is_wanted(self) -> bool:
        """Returns whether a compute thread has something to do now."""

    @abstractmethod
    def _computed_inputs(self) -> Collection[Entry[InputT, OutputT]]:
        """Returns the inputs that are being computed; called with `_changed` held."""

    async def until_room(self, deadline: float, inputs: int = 1) -> None:
        """Checks whether a request of so many inputs would be queued now; see `submit`.

        Before it refuses, it gives the event loop a few turns. The loop may not have read yet that
        other clients left, whose requests then make room.
        """
        loop = asyncio.get_running_loop()
        for turns_left in range(_TURNS_BEFORE_REFUSAL, -1, -1):
            try:
                with self._changed:
                    self._check_room(inputs, patience_seconds=deadline - loop.time())
            except QueueFullError:
                if not turns_left:
                    raise
                await asyncio.sleep(0)
            else:
                return

    async def submit(self, inputs: Sequence[InputT], *, deadline: float) -> BatchedOutputs[OutputT]:
        """Queues all `inputs` of a request or none, and waits for their outputs.

        Cancelling the call, as when the client disconnects, withdraws the inputs. `deadline` is by
        the event loop's clock.
        """
        request = await self._enter(inputs, deadline)
        try:
            await request.future
        finally:
            self._leave(request)
        return request.result()

    async def run(self) -> None:
        """Computes until cancelled or until the model is lost; then fails the open requests."""
        loop = asyncio.get_running_loop()
        try:
            await asyncio.gather(
                *(
                    loop.run_in_executor(self._executor, self._work, loop)
                    for _ in range(self._threads())
                )
            )
        finally:
            with self._changed:
                self._is_ending = True
                self._changed.notify_all()
                unanswered = [*self._computed_inputs(), *self._queue]
            # The threads go on until their inputs are computed.
            fail_all(unanswered, NotReadyError("The server is stopping."))

    async def _enter(
        self, inputs: Sequence[InputT], deadline: float, *, is_streamed: bool = False
    ) -> PendingRequest[OutputT]:
        """Queues a request; `_leave` must follow."""
        await self.until_room(deadline, len(inputs))
        loop = asyncio.get_running_loop()
        with self._changed:
            request: PendingRequest[OutputT] = PendingRequest(
                future=loop.create_future(),
                outputs=[None] * len(inputs),
                missing=len(inputs),
                queued_at=time.monotonic(),
                # There before a thread can see the inputs, so that no piece is lost.
                pieces=asyncio.Queue() if is_streamed else None,
            )
            request.expiry = loop.call_at(deadline, expire, request)
            self._queue.extend(Entry(request, index, value) for index, value in enumerate(inputs))
        if not self._is_telling:
            # Not at once: other requests of this turn of the event loop may share a batch.
            self._is_telling = True
            loop.call_soon(self._tell)
        return request

    def _leave(self, request: PendingRequest[OutputT]) -> None:
        """Withdraws what is not computed of a request that has ended, so that it costs nothing."""
        if request.expiry:
            request.expiry.cancel()
        if request.missing:
            with self._changed:
                self._queue = deque(entry for entry in self._queue if entry.request is not request)

    def _check_room(self, inputs: int, *, patience_seconds: float) -> None:
        length = len(self._queue)
        if self._is_ending:
            raise NotReadyError("The server is stopping.")
        if inputs > self._max_queue_length:
            raise InvalidRequestError(
                f"The request holds {inputs} inputs; the limit is {self._max_queue_length}."
            )
        if not length:
            return
        wait_seconds = self._wait_estimate.seconds(length + len(self._computed_inputs()))
        if length + inputs > self._max_queue_length:
            raise QueueFullError(
                f"The queue holds {length} of at most {self._max_queue_length} inputs; retry "
                "later.",
                retry_after_seconds=wait_seconds,
            )
        if wait_seconds > patience_seconds:
            raise QueueFullError(
                f"{length} inputs wait, which take about {wait_seconds:.0f} seconds; the request "
                f"would be answered too late, {patience_seconds:.0f} seconds from now at most; "
                "retry later.",
                retry_after_seconds=wait_seconds - patience_seconds,
            )

    def _tell(self) -> None:
        self._is_telling = False
        with self._changed:
            if self._is_wanted():
                self._changed.notify()

    def _wait_for_work(self) -> bool:
        """Waits, with `_changed` held, until a thread has something to do; False if never more."""
        while not self._is_ending:
            if self._is_wanted():
                return True
            # Inputs of the clients that got answers may come too late to be waited for.
            delay_ends_in = self._delay_ends_at - time.monotonic()
            self._changed.wait(delay_ends_in if delay_ends_in > 0 else None)
        return False

    def _is_time_to_start(self, room: int) -> bool:
        """Returns whether queued inputs may start now, of which `room` rows fit."""
        length = len(self._queue)
        return length > 0 and (
            length >= min(self._expected, room) or time.monotonic() >= self._delay_ends_at
        )

    def _finished(self, inputs: int, at: float) -> None:
        """Begins the wait for the next requests of the clients whose inputs finished."""
        self._expected = inputs + len(self._queue)
        self._delay_ends_at = at + self._max_batch_delay_seconds

    def _record_speed(self, completed: int, at: float) -> None:
        """Records that the model was busy until now, and completed so many inputs meanwhile."""
        self._wait_estimate.record(busy_seconds=at - self._busy_since, completed=completed)
        self._busy_since = at

    def _give_up(
        self,
        failed: Sequence[Entry[InputT, OutputT]],
        error: Exception,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        """Fails the requests of a batch whose computation raised; a lost model is the end."""
        with self._changed:
            was_ending = self._is_ending
            self._is_ending |= isinstance(error, ModelLostError)
        if not was_ending:  # then nobody waits for the answers
            log_error("batch_failed", error=error, batch_size=len(failed))
        failure = ModelFailureError("The model failed to compute an answer.")
        loop.call_soon_threadsafe(fail_all, failed, failure)
