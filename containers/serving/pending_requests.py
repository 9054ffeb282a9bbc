"""A request on its way through the model: its inputs, and the answer that its client waits for."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, cast

from containers.serving.errors import RequestExpiredError

InputT = TypeVar("InputT")
OutputT = TypeVar("OutputT")


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
class PendingRequest(Generic[OutputT]):
    """One request: its outputs arrive one by one; its future ends with the last output or an error.

    Times are by `time.monotonic`. `pieces` has new pieces of a streamed answer, and None at its
    end; it is None for other answers. `expiry` ends the request at its deadline.
    """

    future: asyncio.Future[None]
    outputs: list[OutputT | None]
    missing: int
    queued_at: float
    started_at: float | None = None
    ended_at: float = 0.0
    batch_size: int = 0
    pieces: asyncio.Queue[bytes | None] | None = None
    expiry: asyncio.TimerHandle | None = None

    def start(self, *, at: float, batch_size: int) -> None:
        if self.started_at is None:
            self.started_at = at
        self.batch_size = max(self.batch_size, batch_size)

    def deliver(self, index: int, output: OutputT, *, at: float) -> None:
        """Records the output of the input at `index`; the last output completes the request."""
        self.outputs[index] = output
        self.missing -= 1
        self.ended_at = at
        if not self.missing and not self.future.done():
            self.future.set_result(None)
            self.put_piece(None)

    def fail(self, error: Exception) -> None:
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
    request: PendingRequest[OutputT]
    index: int
    value: InputT = field(repr=False)


# Any: these functions do not use the entries' types.
def fail_all(entries: Iterable[Entry[Any, Any]], error: Exception) -> None:
    for entry in entries:
        entry.request.fail(error)


def expire(request: PendingRequest[Any]) -> None:
    request.fail(RequestExpiredError("The answer was not ready within the time limit."))
