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
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Generic, TypeVar, cast

from containers.serving.errors import (
    InvalidRequestError,
    ModelFailureError,
    NotReadyError,
    QueueFullError,
    RequestExpiredError,
)
from containers.serving.logs import log_event

_logger = logging.getLogger(__name__)

InputT = TypeVar("InputT")
OutputT = TypeVar("OutputT")


@dataclass(frozen=True)
class BatchedOutputs(Generic[OutputT]):
    """What one request got, and what it cost.

    Attributes:
        outputs: one per input, in the request's order.
        queue_milliseconds: from being queued to the start of its first batch.
        compute_milliseconds: from the start of its first batch to the end of its last.
        batch_size: inputs, other requests' included, of the largest batch it was in.
    """

    outputs: tuple[OutputT, ...]
    queue_milliseconds: float
    compute_milliseconds: float
    batch_size: int


@dataclass(eq=False)
class _Ticket(Generic[OutputT]):
    """One request: its outputs arrive one by one, its future ends with the last or an error."""

    future: asyncio.Future[None]
    outputs: list[OutputT | None]
    missing: int
    queued_at: float
    started_at: float | None = None
    ended_at: float = 0.0
    batch_size: int = 0


@dataclass(frozen=True, eq=False)
class _Entry(Generic[InputT, OutputT]):
    """One input of a request, waiting."""

    ticket: _Ticket[OutputT]
    index: int
    value: InputT = field(repr=False)


class Batcher(Generic[InputT, OutputT]):
    """Joins the inputs of concurrent requests into batches for one executor thread.

    Args:
        predict: computes one output per input, in order; called on `executor`.
        executor: a pool of one thread.
        max_batch_size: most inputs per call of `predict`.
        max_batch_delay_seconds: longest wait for more inputs, straight after a batch.
        max_queue_length: most inputs waiting.
    """

    def __init__(
        self,
        *,
        predict: Callable[[Sequence[InputT]], Sequence[OutputT]],
        executor: Executor,
        max_batch_size: int,
        max_batch_delay_seconds: float,
        max_queue_length: int,
    ) -> None:
        self._predict = predict
        self._executor = executor
        self._max_batch_size = max_batch_size
        self._max_batch_delay_seconds = max_batch_delay_seconds
        self._max_queue_length = max_queue_length
        self._queue: deque[_Entry[InputT, OutputT]] = deque()
        self._arrived = asyncio.Event()
        self._last_batch_ended_at = float("-inf")
        self._expected_in_flight = 0
        self._is_computing = False

    @property
    def queue_length(self) -> int:
        """Inputs waiting for a batch."""
        return len(self._queue)

    @property
    def is_computing(self) -> bool:
        """Whether the executor thread is inside `predict`."""
        return self._is_computing

    async def submit(self, inputs: Sequence[InputT], *, deadline: float) -> BatchedOutputs[OutputT]:
        """Queues all `inputs` or none, and waits for their outputs.

        Cancelling the call, as when the client went away, takes what is still queued out again.

        Args:
            inputs: what one request asks for, at least one.
            deadline: time of the event loop's clock, in seconds, after which nobody waits.

        Raises:
            InvalidRequestError: more inputs than the queue could ever hold.
            QueueFullError: more inputs than there is room for now.
            RequestExpiredError: the deadline passed.
            ModelFailureError: the predictor raised.
            NotReadyError: the batcher is stopping.
        """
        if len(inputs) > self._max_queue_length:
            raise InvalidRequestError(
                f"The request holds {len(inputs)} inputs; the limit is {self._max_queue_length}."
            )
        if len(self._queue) + len(inputs) > self._max_queue_length:
            raise QueueFullError(
                f"The queue holds {len(self._queue)} of at most {self._max_queue_length} inputs; "
                "retry later."
            )
        loop = asyncio.get_running_loop()
        ticket: _Ticket[OutputT] = _Ticket(
            future=loop.create_future(),
            outputs=[None] * len(inputs),
            missing=len(inputs),
            queued_at=loop.time(),
        )
        self._queue.extend(_Entry(ticket, index, value) for index, value in enumerate(inputs))
        self._arrived.set()
        expiry = loop.call_at(deadline, _expire, ticket)
        try:
            await ticket.future
        finally:
            expiry.cancel()
            if ticket.missing:
                self._withdraw(ticket)
        return _outputs_of(ticket)

    async def run(self) -> None:
        """Computes batches until cancelled; then fails the requests that still wait."""
        try:
            while True:
                await self._wait_for_batch()
                await self._compute(self._take_batch())
        finally:
            for entry in self._queue:
                _fail(entry.ticket, NotReadyError("The server is stopping."))

    async def _wait_for_batch(self) -> None:
        """Returns when the next batch should start; at least one input may then be queued."""
        loop = asyncio.get_running_loop()
        while not self._queue:
            self._arrived.clear()
            await self._arrived.wait()
        give_up_at = self._last_batch_ended_at + self._max_batch_delay_seconds
        target = min(self._expected_in_flight, self._max_batch_size)
        while len(self._queue) < target and loop.time() < give_up_at:
            self._arrived.clear()
            try:
                async with asyncio.timeout_at(give_up_at):
                    await self._arrived.wait()
            except TimeoutError:
                return

    def _take_batch(self) -> list[_Entry[InputT, OutputT]]:
        size = min(len(self._queue), self._max_batch_size)
        return [self._queue.popleft() for _ in range(size)]

    async def _compute(self, batch: Sequence[_Entry[InputT, OutputT]]) -> None:
        if not batch:  # every client went away while more were waited for
            return
        loop = asyncio.get_running_loop()
        started_at = loop.time()
        for entry in batch:
            if entry.ticket.started_at is None:
                entry.ticket.started_at = started_at
            entry.ticket.batch_size = max(entry.ticket.batch_size, len(batch))
        self._is_computing = True
        future = loop.run_in_executor(
            self._executor, functools.partial(self._checked_predict, [e.value for e in batch])
        )
        # Stays true if this task is cancelled meanwhile: the thread goes on regardless.
        future.add_done_callback(self._computed)
        try:
            outputs = await asyncio.shield(future)
        except Exception as error:
            log_event(_logger, logging.ERROR, "batch_failed", error=error, batch_size=len(batch))
            for entry in batch:
                _fail(entry.ticket, ModelFailureError("The model failed to compute an answer."))
            return
        except asyncio.CancelledError:
            for entry in batch:
                _fail(entry.ticket, NotReadyError("The server is stopping."))
            raise
        finally:
            self._last_batch_ended_at = loop.time()
            self._expected_in_flight = len(batch) + len(self._queue)
        for entry, output in zip(batch, outputs, strict=True):
            _deliver(entry, output, ended_at=self._last_batch_ended_at)

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

    def _withdraw(self, ticket: _Ticket[OutputT]) -> None:
        """Frees the queue of a request that ended early, so that it costs no compute."""
        self._queue = deque(entry for entry in self._queue if entry.ticket is not ticket)


def _expire(ticket: _Ticket[OutputT]) -> None:
    _fail(ticket, RequestExpiredError("The answer was not ready within the time limit."))


def _fail(ticket: _Ticket[OutputT], error: Exception) -> None:
    if not ticket.future.done():
        ticket.future.set_exception(error)


def _deliver(entry: _Entry[InputT, OutputT], output: OutputT, *, ended_at: float) -> None:
    ticket = entry.ticket
    ticket.outputs[entry.index] = output
    ticket.missing -= 1
    ticket.ended_at = ended_at
    if not ticket.missing and not ticket.future.done():
        ticket.future.set_result(None)


def _outputs_of(ticket: _Ticket[OutputT]) -> BatchedOutputs[OutputT]:
    started_at = ticket.queued_at if ticket.started_at is None else ticket.started_at
    return BatchedOutputs(
        outputs=cast(tuple[OutputT, ...], tuple(ticket.outputs)),  # none is missing now
        queue_milliseconds=(started_at - ticket.queued_at) * 1000,
        compute_milliseconds=(ticket.ended_at - started_at) * 1000,
        batch_size=ticket.batch_size,
    )
