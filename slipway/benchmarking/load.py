"""The load driver: requests through many connections, of one process and one event loop.

In the closed loop (`ClosedLoad`) each client has one request under way at any time. All clients
connect and start together. The throughput is the number of clients divided by the mean time that a
request keeps its client: Little's law, for clients that never pause. It uses whole cycles of every
client, so it makes no difference where in a batch of answers the measurement begins or ends.

This requires a server that serves its clients alike. If a server lets some clients wait until
others have ended, its throughput is the number of answers divided by the time from the first
request to the last answer. Fewer clients are left at the end, so it takes many requests.

While a server stalls, a closed loop sends nothing. Users do not wait for each other. In the open
loop (`OpenLoad`) requests have times, set before the load begins. A latency counts from the
request's time, also while it waits for a connection. `Sample.driver_late_seconds` is the part that
the driver itself was late, up to a millisecond of which is uvloop's timer.
"""

import asyncio
import gc
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import uvloop

from slipway.benchmarking.connections import Connection, LoadError, Reply

# Before the first arrival.
_LEAD_SECONDS = 0.05
# Of a client whose request failed, so that failures do not become a busy loop.
_PAUSE_SECONDS = 0.1
# uvloop rounds a wait to the nearest step, and a request may not be sent early.
_TIMER_STEP_SECONDS = 0.001

_Result = TypeVar("_Result")


@dataclass(slots=True)
class Sample:
    """One request; times are by `time.perf_counter`.

    `body` is the index of its body. In the closed loop `intended_at` is when it was sent. At
    `ready_at` a connection was free for it. `error` says why there is no reply. `counts` is False
    in the warm-up, and after its client had enough.
    """

    body: int
    intended_at: float
    ready_at: float
    sent_at: float
    ended_at: float
    reply: Reply | None
    error: str = ""
    counts: bool = False

    @property
    def latency_seconds(self) -> float:
        """Returns the time from the intended sending to the last byte."""
        return self.ended_at - self.intended_at

    @property
    def late_seconds(self) -> float:
        return max(0.0, self.sent_at - self.intended_at)

    @property
    def driver_late_seconds(self) -> float:
        """Returns how late it was sent although a connection was free."""
        return max(0.0, self.sent_at - max(self.intended_at, self.ready_at))

    @property
    def failure(self) -> str | None:
        """Returns why it failed; None for an answer with status 200."""
        return self.error if self.reply is None else self.reply.failure


Watch = Callable[[Sample], None]
"""Called with each request; raises an error to end the load."""


def end_at_failure(sample: Sample) -> None:
    """Ends a load with its first failure; raises `LoadError`."""
    if sample.failure is not None:
        raise LoadError(sample.failure)


@dataclass(frozen=True)
class ClosedLoad:
    """A load of the closed loop: bodies are sent in turn, and each client begins at another one.

    Numbers and seconds are the least of each client. With `keep_up`, clients that have enough
    continue, uncounted, until all have enough. The last clients are then answered under the same
    load. A server that answers one request at a time in order of arrival does not need it, because
    later requests do not change its answers.
    """

    bodies: Sequence[bytes]
    clients: int
    warm_up_requests: int = 0
    warm_up_seconds: float = 0.0
    requests: int = 1
    seconds: float = 0.0
    keep_up: bool = True


@dataclass(frozen=True)
class OpenLoad:
    """A load of the open loop: bodies are sent in turn, at ascending times in seconds.

    Requests beyond the number of connections wait for one to end. Those before `warm_up_seconds` do
    not count.
    """

    bodies: Sequence[bytes]
    arrivals: Sequence[float]
    connections: int
    warm_up_seconds: float = 0.0


class Load:
    """One load under way. What it measured so far stays when it is cancelled or fails.

    `samples` has the requests of each client or connection. The processor time is of this process.
    """

    def __init__(
        self,
        specification: ClosedLoad | OpenLoad,
        connect: Callable[[], Connection],
        request: Callable[[bytes], bytes],
        watch: Watch = end_at_failure,
    ) -> None:
        self._given, self._have_enough = specification, 0
        self._connect, self._request, self._watch = connect, request, watch
        self.samples: list[list[Sample]] = []
        self.processor_seconds = self.seconds = 0.0

    async def run(self) -> None:
        """Runs it to its end; raises `LoadError`, or what the watch raised."""
        given = self._given
        if isinstance(given, ClosedLoad):
            count = given.clients
        else:
            count = min(given.connections, len(given.arrivals))
        if not count:
            raise LoadError("the load has no request: raise its rate or its seconds")
        self.samples = [[] for _ in range(count)]
        self._connections = [self._connect() for _ in range(count)]
        try:
            if isinstance(given, ClosedLoad):
                async with _tasks() as tasks:
                    for connection in self._connections:
                        tasks.create_task(connection.open())
            # A collection would stop all clients at once.
            gc.collect()
            gc.disable()
            used_before, began_at = time.process_time(), time.perf_counter()
            try:
                async with _tasks() as tasks:
                    if isinstance(given, ClosedLoad):
                        for number in range(count):
                            tasks.create_task(self._send_all(given, number))
                    else:
                        await self._send_at_times(given, tasks)
            finally:
                gc.enable()
                self.processor_seconds = time.process_time() - used_before
                self.seconds = time.perf_counter() - began_at
        finally:
            for connection in self._connections:
                connection.close()
            # uvloop closes a connection two steps after it is told to.
            await asyncio.sleep(0)
            await asyncio.sleep(0)

    async def _send_all(self, given: ClosedLoad, number: int) -> None:
        samples = self.samples[number]
        first_counted: Sample | None = None
        counted = 0
        has_enough = False
        while self._have_enough < given.clients if given.keep_up else not has_enough:
            index = (number + len(samples) * given.clients) % len(given.bodies)
            sample = await self._send(number, index)
            if has_enough:
                continue
            if first_counted is None:
                is_warm = sample.sent_at - samples[0].sent_at >= given.warm_up_seconds
                if len(samples) <= given.warm_up_requests or not is_warm:
                    continue
                first_counted = sample
            sample.counts = True
            counted += 1
            lasted = sample.ended_at - first_counted.sent_at
            if counted >= given.requests and lasted >= given.seconds:
                has_enough = True
                self._have_enough += 1
        # A server may serve one connection at a time until it ends.
        self._connections[number].close()

    async def _send_at_times(self, given: OpenLoad, tasks: asyncio.TaskGroup) -> None:
        # The last one that became free is used again, so that few connections carry a low rate.
        free = list(range(len(self._connections)))
        waiting: deque[tuple[int, float]] = deque()

        async def send(number: int, index: int, at: float, ready_at: float) -> None:
            while True:
                sample = await self._send(number, index % len(given.bodies), at, ready_at)
                sample.counts = given.arrivals[index] >= given.warm_up_seconds
                if not waiting:
                    free.append(number)
                    return
                (index, at), ready_at = waiting.popleft(), time.perf_counter()

        began_at = time.perf_counter() + _LEAD_SECONDS
        for index, arrival in enumerate(given.arrivals):
            at = began_at + arrival
            while (wait_seconds := at - time.perf_counter()) > 0:
                await asyncio.sleep(wait_seconds + _TIMER_STEP_SECONDS / 2)
            if free:
                tasks.create_task(send(free.pop(), index, at, at))
            else:
                waiting.append((index, at))

    async def _send(
        self, number: int, body: int, at: float | None = None, ready_at: float | None = None
    ) -> Sample:
        request = self._request(self._given.bodies[body])
        reply, error = None, ""
        sent_at = time.perf_counter()
        try:
            reply = await self._connections[number].exchange(request)
        except LoadError as failed:
            error = str(failed)
        ended_at = time.perf_counter()
        at = sent_at if at is None else at
        ready_at = sent_at if ready_at is None else ready_at
        sample = Sample(body, at, ready_at, sent_at, ended_at, reply, error)
        self.samples[number].append(sample)
        self._watch(sample)
        if sample.failure is not None:
            await asyncio.sleep(_PAUSE_SECONDS)
        return sample


@asynccontextmanager
async def _tasks() -> AsyncIterator[asyncio.TaskGroup]:
    """Waits for all tasks; the first that fails ends the others, and its error is raised."""
    try:
        async with asyncio.TaskGroup() as tasks:
            yield tasks
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None


def run_load(work: Coroutine[Any, Any, _Result]) -> _Result:
    """Runs a coroutine of this module in an event loop that costs little."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)
