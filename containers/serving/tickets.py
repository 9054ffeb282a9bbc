"""A request on its way through the model: its inputs, and the answer that its client waits for."""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, Generic, TypeVar, cast

from containers.serving.errors import InvalidRequestError, QueueFullError, RequestExpiredError
from containers.serving.waiting import WaitEstimate

InputT = TypeVar("InputT")
OutputT = TypeVar("OutputT")

# Reading the end of a connection, cancelling its request and withdrawing it take a turn each.
_TURNS_BEFORE_REFUSAL: Final = 3


@dataclass(frozen=True)
class BatchedOutputs(Generic[OutputT]):
    """The outputs of one request, and the cost of computing them.

    Attributes:
        outputs: one per input, in the request's order.
        queue_milliseconds: from being queued to the start of its first batch.
        compute_milliseconds: from the start of its first batch to the end of its last.
        batch_size: inputs, other requests' included, of its largest batch.
    """

    outputs: tuple[OutputT, ...]
    queue_milliseconds: float
    compute_milliseconds: float
    batch_size: int


@dataclass(eq=False)
class Ticket(Generic[OutputT]):
    """One request: its outputs arrive one by one; its future ends with the last output or an error.

    Attributes:
        queued_at: by `time.monotonic`, as the other times.
        pieces: new pieces of a streamed answer, and None at its end; None for other answers.
    """

    future: asyncio.Future[None]
    outputs: list[OutputT | None]
    missing: int
    queued_at: float
    started_at: float | None = None
    ended_at: float = 0.0
    batch_size: int = 0
    pieces: asyncio.Queue[bytes | None] | None = None

    def start(self, *, at: float, batch_size: int) -> None:
        """Records that one of the inputs is being computed, in a batch of `batch_size` inputs."""
        if self.started_at is None:
            self.started_at = at
        self.batch_size = max(self.batch_size, batch_size)

    def deliver(self, index: int, output: OutputT, *, at: float) -> None:
        """Records the output of one input; the last output completes the request.

        Args:
            index: position of the input in the request.
            output: the value that the model computed.
            at: end of the computation, by `time.monotonic`.
        """
        self.outputs[index] = output
        self.missing -= 1
        self.ended_at = at
        if not self.missing and not self.future.done():
            self.future.set_result(None)
            self.put_piece(None)

    def fail(self, error: Exception) -> None:
        """Ends the request with an error, unless it has ended already."""
        if not self.future.done():
            self.future.set_exception(error)
            self.put_piece(None)

    def put_piece(self, piece: bytes | None) -> None:
        """Hands a piece to a streamed answer; None ends it."""
        if self.pieces is not None:
            self.pieces.put_nowait(piece)

    def result(self) -> BatchedOutputs[OutputT]:
        """Returns the outputs; all of them must have been delivered."""
        started_at = self.queued_at if self.started_at is None else self.started_at
        return BatchedOutputs(
            outputs=cast(tuple[OutputT, ...], tuple(self.outputs)),
            queue_milliseconds=(started_at - self.queued_at) * 1000,
            compute_milliseconds=(self.ended_at - started_at) * 1000,
            batch_size=self.batch_size,
        )


@dataclass(frozen=True, eq=False)
class Entry(Generic[InputT, OutputT]):
    """One input of a request."""

    ticket: Ticket[OutputT]
    index: int
    value: InputT = field(repr=False)


class BoundedQueue(Generic[InputT, OutputT]):
    """The waiting inputs in order of arrival; a request is queued whole or refused.

    The event loop adds inputs, and compute threads take them out. A thread must hold `changed`
    while it uses the queue.

    Args:
        max_length: most inputs waiting.
        is_wanted: returns whether a thread that waits for `changed` should wake after inputs
            arrived.

    Attributes:
        changed: guards the queue; it can be entered again by the thread that holds it.
        wait_estimate: the recent speed of the model.
    """

    def __init__(self, max_length: int, is_wanted: Callable[[], bool]) -> None:
        self._max_length = max_length
        self._is_wanted = is_wanted
        self._entries: deque[Entry[InputT, OutputT]] = deque()
        self._closed_by: Exception | None = None
        self._is_telling = False
        self.changed = threading.Condition()
        self.wait_estimate = WaitEstimate()

    def __len__(self) -> int:
        return len(self._entries)

    async def enter(
        self,
        inputs: Sequence[InputT],
        *,
        deadline: float,
        computing: Callable[[], int],
        is_streamed: bool = False,
    ) -> Ticket[OutputT]:
        """Queues all inputs of a request, see `add`.

        Before it refuses a request, it gives the event loop a few turns. The loop may not have read
        yet that other clients left, whose requests then make room.

        Args:
            inputs: at least one.
            deadline: time of the event loop's clock, in seconds, after which the request fails.
            computing: returns the number of inputs that are being computed.
            is_streamed: whether the ticket gets the pieces of the answer.
        """
        await self.until_room(len(inputs), deadline=deadline, computing=computing)
        return self.add(inputs, deadline=deadline, computing=computing(), is_streamed=is_streamed)

    async def until_room(
        self, inputs: int, *, deadline: float, computing: Callable[[], int]
    ) -> None:
        """Checks whether a request would be queued, after the turns that `enter` gives the loop.

        Args:
            inputs: number of its inputs.
            deadline: time of the event loop's clock, in seconds, after which the request fails.
            computing: returns the number of inputs that are being computed.

        Raises:
            QueueFullError: there is no room, see `add`.
        """
        loop = asyncio.get_running_loop()
        for turns_left in range(_TURNS_BEFORE_REFUSAL, -1, -1):
            try:
                self._check(inputs, patience_seconds=deadline - loop.time(), computing=computing())
            except QueueFullError:
                if not turns_left:
                    raise
                await asyncio.sleep(0)
            else:
                return

    def add(
        self,
        inputs: Sequence[InputT],
        *,
        deadline: float,
        computing: int,
        is_streamed: bool = False,
    ) -> Ticket[OutputT]:
        """Queues all inputs of a request.

        Args:
            inputs: at least one.
            deadline: time of the event loop's clock, in seconds, after which the request fails.
            computing: number of inputs that are being computed and so finish before the waiting
                inputs.
            is_streamed: whether the ticket gets the pieces of the answer.

        Raises:
            InvalidRequestError: there are more inputs than the queue can ever hold.
            QueueFullError: the queue has no room for the inputs now, or the waiting inputs would
                take until after the deadline.
            Exception: the error that the queue was closed with.
        """
        loop = asyncio.get_running_loop()
        with self.changed:
            self._check(len(inputs), patience_seconds=deadline - loop.time(), computing=computing)
            ticket: Ticket[OutputT] = Ticket(
                future=loop.create_future(),
                outputs=[None] * len(inputs),
                missing=len(inputs),
                queued_at=time.monotonic(),
                # There before a thread can see the inputs, so that no piece is lost.
                pieces=asyncio.Queue() if is_streamed else None,
            )
            self._entries.extend(Entry(ticket, index, value) for index, value in enumerate(inputs))
        if not self._is_telling:
            # Not at once: other requests of this turn of the event loop may share a batch.
            self._is_telling = True
            loop.call_soon(self._tell)
        return ticket

    def _check(self, inputs: int, *, patience_seconds: float, computing: int) -> None:
        """Refuses a request that has no room, or would be answered too late; see `add`."""
        if self._closed_by is not None:
            raise self._closed_by
        if inputs > self._max_length:
            raise InvalidRequestError(
                f"The request holds {inputs} inputs; the limit is {self._max_length}."
            )
        if len(self) + inputs > self._max_length:
            raise QueueFullError(
                f"The queue holds {len(self)} of at most {self._max_length} inputs; retry later.",
                retry_after_seconds=self.wait_estimate.seconds(len(self) + computing),
            )
        wait_seconds = self.wait_estimate.seconds(len(self) + computing) if len(self) else 0.0
        if wait_seconds > patience_seconds:
            raise QueueFullError(
                f"{len(self)} inputs wait, which take about {wait_seconds:.0f} seconds; the "
                f"request would be answered too late, {patience_seconds:.0f} seconds from now at "
                "most; retry later.",
                retry_after_seconds=wait_seconds - patience_seconds,
            )

    def _tell(self) -> None:
        self._is_telling = False
        with self.changed:
            if self._is_wanted():
                self.changed.notify()

    def first(self) -> InputT:
        """Returns the next input; the queue must not be empty."""
        return self._entries[0].value

    def take(self) -> Entry[InputT, OutputT]:
        """Removes the next entry; the queue must not be empty."""
        return self._entries.popleft()

    def waiting(self, most: int) -> list[InputT]:
        """Returns the next inputs, up to `most` of them."""
        return [entry.value for entry in islice(self._entries, most)]

    def take_chosen(self, indices: Sequence[int]) -> list[Entry[InputT, OutputT]]:
        """Removes the entries at these positions of the queue; the others stay in order."""
        chosen = frozenset(indices)
        first = [self._entries.popleft() for _ in range(max(chosen) + 1)]
        self._entries.extendleft(
            first[index] for index in reversed(range(len(first))) if index not in chosen
        )
        return [first[index] for index in indices]

    def withdraw(self, ticket: Ticket[OutputT]) -> None:
        """Removes the inputs of a request that ended early, so that they cost no compute."""
        with self.changed:
            self._entries = deque(entry for entry in self._entries if entry.ticket is not ticket)

    def close(self, error: Exception) -> None:
        """Fails every waiting request, and refuses further requests."""
        with self.changed:
            self._closed_by = error
        fail_all(self._entries, error)


# Any: these functions do not use the entries' types.
def fail_all(entries: Iterable[Entry[Any, Any]], error: Exception) -> None:
    """Ends the requests of all entries with an error."""
    for entry in entries:
        entry.ticket.fail(error)


def expire(ticket: Ticket[Any]) -> None:
    """Ends a request whose deadline has passed."""
    ticket.fail(RequestExpiredError("The answer was not ready within the time limit."))
