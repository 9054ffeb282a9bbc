"""The workers: placed on their cores, fed from one queue, restarted when they die.

A batch goes to the worker with the fewest batches, on the lane that has been free the longest.
Batches therefore go round all workers, and wait behind another batch only if every worker is busy.

A batch whose worker dies is computed once more by another worker. If that worker dies too, the
batch is answered with an error. A batch that only waited in the worker is not to blame, and goes to
another worker as if it were new. A dead worker is started again on the same cores, after a pause
that grows with the deaths of the last minutes. The cores are free by then, because the program
waits for the process to end. If too many workers die, the model is lost and the server ends.
"""

import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from containers.neuron.lanes import (
    Lane,
    WorkerCommand,
    WorkerProcess,
    WorkerRefusedError,
    exit_reason,
)
from containers.neuron.messages import FAILED, ConnectionLostError
from containers.neuron.placement import Placement
from containers.serving.logs import log_error, log_info, log_warning
from containers.serving.predictor import ModelLoadError, ModelLostError

# A batch whose two workers died is not tried on a third.
_ATTEMPTS = 2


@dataclass(frozen=True)
class RestartPolicy:
    """Limits on how often workers may die.

    Of all workers together, one death more than `most_deaths` within the window ends the server.
    The pause before a worker is started again doubles with each death of that worker, up to the
    longest.
    """

    window_seconds: float = 300.0
    most_deaths: int = 10
    first_pause_seconds: float = 0.5
    longest_pause_seconds: float = 30.0

    def pause_seconds(self, deaths: int) -> float:
        """Returns the pause before the restart, after that many recent deaths of a worker."""
        return min(self.first_pause_seconds * 2.0 ** (deaths - 1), self.longest_pause_seconds)


class BatchFailedError(Exception):
    """A batch could not be computed; the message gives the reason, for the log."""


class WorkerPool:
    """Processes that compute batches, one for each placement; several threads may call `compute`.

    `lost` gets a `ModelLostError` when the model can never compute again.
    """

    def __init__(
        self,
        placements: Sequence[Placement],
        command: WorkerCommand,
        policy: RestartPolicy,
        lost: Future[None],
    ) -> None:
        self._placements = placements
        self._command = command
        self._policy = policy
        # Guards all attributes below; notified when a lane becomes free, and at the end.
        self._changed = threading.Condition()
        self._free: deque[Lane] = deque()
        self._workers: dict[int, WorkerProcess] = {}
        self._deaths: deque[tuple[float, int]] = deque()
        self._closing = threading.Event()
        self._supervisors: list[threading.Thread] = []
        self.lost = lost

    @property
    def lanes(self) -> int:
        return len(self._placements) * self._command.lanes

    @property
    def lanes_ahead(self) -> int:
        return len(self._placements) * self._command.lanes_ahead

    def process_ids(self) -> list[int]:
        with self._changed:
            return [self._workers[number].process.pid for number in sorted(self._workers)]

    def start(self) -> None:
        """Starts all workers at the same time, and waits until each has loaded its model.

        If a worker fails, all are stopped, and a `ModelLoadError` says which failed and why.
        """
        try:
            problems: dict[str, list[Placement]] = {}
            started = [(place, self._launch(place)) for place in self._placements]
            for place, worker in started:
                try:
                    worker.until_ready()
                except WorkerRefusedError as error:
                    problems.setdefault(str(error), []).append(place)
            if problems:
                raise ModelLoadError(
                    "; ".join(f"{_named(places)}: {text}" for text, places in problems.items())
                )
        except WorkerRefusedError as error:
            self.close()
            raise ModelLoadError(str(error)) from error
        except BaseException:
            self.close()
            raise
        for place, worker in started:
            self._offer(worker)
            supervisor = threading.Thread(
                target=self._supervise, args=(place, worker), name=f"worker-{place.number}"
            )
            self._supervisors.append(supervisor)
            supervisor.start()

    # Any: int64 in, float32 out.
    def compute(self, arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        """Computes a batch on the next free lane; waits for a free lane.

        Raises `BatchFailedError` if the runtime refused the batch, or the workers that had it died.
        Raises `ModelLostError` if no worker will ever be free.
        """
        attempt = 1
        while attempt <= _ATTEMPTS:
            lane = self._take()
            try:
                reply = lane.exchange(arrays)
            except ConnectionLostError as error:
                # A worker that is not dead is stuck, and blocks its cores.
                lane.worker.kill()
                is_suspect = self._lose(lane)
                log_warning(
                    "batch_lost",
                    worker_process_id=lane.worker.process.pid,
                    attempt=attempt,
                    message=str(error),
                )
                if isinstance(error.__cause__, TimeoutError):
                    raise BatchFailedError(
                        f"no answer within {self._command.batch_timeout_seconds:g} seconds; the "
                        "worker was killed"
                    ) from error
                attempt += is_suspect
                continue
            if reply.kind == FAILED:
                # The worker ends by itself, and its supervisor starts another.
                self._lose(lane)
                raise BatchFailedError(reply.text)
            self._settle(lane)
            return reply.arrays
        raise BatchFailedError(f"{_ATTEMPTS} workers died one after the other, each with the batch")

    def close(self) -> None:
        """Stops all workers; a thread that waits for a lane gets an error."""
        with self._changed:
            self._closing.set()
            self._changed.notify_all()
            # No answer is pending, so no worker needs an orderly shutdown.
            for worker in self._workers.values():
                worker.kill()
        for supervisor in self._supervisors:
            supervisor.join()
        for worker in self._workers.values():
            worker.until_ended()
            self._retire(worker, worker.lanes)

    def _launch(self, placement: Placement) -> WorkerProcess:
        """Starts a worker, which gets no batch yet; `WorkerRefusedError` if the system cannot."""
        try:
            worker = WorkerProcess(placement, self._command)
        except OSError as error:
            raise WorkerRefusedError(
                f"cannot start {self._command.arguments[0]}: {error.strerror}"
            ) from error
        with self._changed:
            self._workers[placement.number] = worker
            if self._closing.is_set():
                worker.kill()
        return worker

    def _offer(self, worker: WorkerProcess) -> None:
        with self._changed:
            self._free.extend(worker.lanes)
            self._changed.notify_all()

    def _take(self) -> Lane:
        with self._changed:
            while not self._free:
                if self.lost.done():
                    self.lost.result()
                if self._closing.is_set():
                    raise BatchFailedError("the workers are being stopped")
                self._changed.wait()
            lane = min(self._free, key=lambda lane: len(lane.worker.taken))
            self._free.remove(lane)
            lane.worker.taken.append(lane)
            return lane

    def _lose(self, lane: Lane) -> bool:
        """Gives up a lane and its worker, which ends; returns whether it computed the batch."""
        self._retire(lane.worker)
        self._settle(lane)
        return lane in lane.worker.suspects

    def _settle(self, lane: Lane) -> None:
        """Returns a lane to the pool, or closes it if its worker ends."""
        with self._changed:
            lane.worker.taken.remove(lane)
            if not lane.worker.is_retired:
                self._free.append(lane)
                self._changed.notify()
                return
        lane.connection.close()

    def _retire(self, worker: WorkerProcess, lanes: Sequence[Lane] = ()) -> None:
        """Closes the lanes of a worker that has ended, or is about to end, except lanes in use.

        `lanes` are known to be unused, in addition to the free ones.
        """
        with self._changed:
            if not worker.is_retired:
                worker.is_retired = True
                worker.suspects = frozenset(worker.taken[: self._command.lanes])
            idle = [lane for lane in self._free if lane.worker is worker]
            self._free = deque(lane for lane in self._free if lane.worker is not worker)
        for lane in (*idle, *lanes):
            lane.connection.close()

    def _supervise(self, placement: Placement, worker: WorkerProcess) -> None:
        while True:
            exit_code = worker.until_ended()
            self._retire(worker)
            if self._closing.is_set():
                return
            deaths = self._count_death(placement)
            log_error(
                "worker_died",
                worker=placement.number,
                cores=placement.visible_cores if placement.cores else None,
                worker_process_id=worker.process.pid,
                message=exit_reason(exit_code),
                deaths=deaths,
            )
            restarted = self._restarted(placement, deaths)
            if restarted is None:
                return
            worker = restarted
            self._offer(worker)
            log_info(
                "worker_restarted", worker=placement.number, worker_process_id=worker.process.pid
            )

    def _restarted(self, placement: Placement, deaths: int) -> WorkerProcess | None:
        """Starts a worker again and again until it is ready; returns None if the pool ends."""
        while True:
            if self.lost.done() or self._closing.wait(self._policy.pause_seconds(deaths)):
                return None
            worker = None
            try:
                worker = self._launch(placement)
                worker.until_ready()
            except WorkerRefusedError as error:
                if worker is not None:
                    worker.kill()
                    worker.until_ended()
                    self._retire(worker, worker.lanes)
                log_error("worker_not_restarted", worker=placement.number, message=str(error))
                deaths = self._count_death(placement)
                continue
            return worker

    def _count_death(self, placement: Placement) -> int:
        """Counts a death; returns the recent deaths of this worker.

        If too many workers died recently, the model is lost.
        """
        now = time.monotonic()
        with self._changed:
            self._deaths.append((now, placement.number))
            while self._deaths[0][0] < now - self._policy.window_seconds:
                self._deaths.popleft()
            if len(self._deaths) > self._policy.most_deaths and not self.lost.done():
                self.lost.set_exception(
                    ModelLostError(
                        f"{len(self._deaths)} workers died within "
                        f"{self._policy.window_seconds:g} seconds; at most "
                        f"{self._policy.most_deaths} may"
                    )
                )
                self._changed.notify_all()
            return sum(number == placement.number for _, number in self._deaths)


def _named(places: Sequence[Placement]) -> str:
    return str(places[0]) if len(places) == 1 else f"{len(places)} workers, first {places[0]}"
