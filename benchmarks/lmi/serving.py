"""The serving part: each server is started, asked by one client and by several, and stopped."""

import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.errors import BenchmarkError
from benchmarks.lmi.design import Design, System
from benchmarks.lmi.djl import DjlServing
from benchmarks.lmi.prompts import BODIES, PROMPTS, completion
from benchmarks.lmi.servers import Server, Start
from benchmarks.load import LoadResult, LoadSpecification, drive_from_own_process
from benchmarks.program import Say
from benchmarks.trials import Trial, carry_out

_TIMEOUT_SECONDS = 120.0
# A round of the warm-up that is faster than the best one by less than this ends it.
_QUIET = 1.02


@dataclass(frozen=True)
class Life:
    """One life of a server.

    Args:
        start: the times of its start.
        warm_ups: answers per second of each round before the measurement.
        loads: the clients' measurements, by their number.
    """

    start: Start
    warm_ups: tuple[float, ...]
    loads: dict[int, LoadResult]


@dataclass(frozen=True)
class Agreement:
    """Whether all servers gave the same answers while they were measured.

    Args:
        answers: number of answers of all servers.
        same: number of answers with the text that was found before anything was timed.
    """

    answers: int
    same: int


@dataclass(frozen=True)
class ServingSession:
    """The measurements of the serving part.

    Args:
        trials: in the order in which they ran.
        agreement: comparison of the timed answers.
    """

    trials: tuple[Trial[System, Life], ...]
    agreement: Agreement


class _Answers:
    """The text that belongs to each prompt, and the server that gave it first."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._first: System | None = None
        self.timed = 0
        self.same = 0

    def compare(self, system: System, texts: Sequence[str]) -> None:
        """Compares a server's answers with the first server's.

        Raises:
            BenchmarkError: they differ, so that the times would be of different work.
        """
        if self._first is None:
            self._texts, self._first = list(texts), system
            return
        for prompt, text, expected in zip(PROMPTS, texts, self._texts, strict=True):
            if text != expected:
                raise BenchmarkError(
                    f"{system} adds {text!r} to {prompt!r} and {self._first} adds {expected!r}: "
                    "they do not compute the same model"
                )

    def count(self, load: LoadResult) -> None:
        """Counts timed answers separately, because in a batch the runtime may round otherwise."""
        for index, answer, count in load.answers:
            self.timed += count
            if completion(index, answer) == self._texts[index]:
                self.same += count


def measure_serving(
    design: Design, djl_serving: DjlServing, folder: Path, say: Say
) -> ServingSession:
    """Carries out the rounds: one server at a time, a fresh one for each trial.

    Args:
        design: the plan of the run.
        djl_serving: the DJL Serving to compare.
        folder: an empty folder.
        say: called with lines of progress.

    Raises:
        BenchmarkError: a server did not start, failed, or its answers differ from the others'.
    """
    # Random numbers of an experiment, not of a secret.
    generator = random.Random(f"{design.seed} concurrencies")  # noqa: S311
    answers, folders = _Answers(), (folder / str(number) for number in itertools.count())

    def live(system: System) -> Life:
        own = next(folders)
        own.mkdir()
        with Server(
            system,
            own,
            djl_serving,
            threads=design.cores,
            max_batch_size=design.max_batch_size,
        ) as server:
            texts = [completion(index, server.ask(body)) for index, body in enumerate(BODIES)]
            answers.compare(system, texts)
            warm_ups = _warm_up(server, system, design)
            loads = {
                clients: _load(server, system, clients, design.seconds)
                for clients in generator.sample(design.concurrencies, len(design.concurrencies))
            }
        for load in loads.values():
            answers.count(load)
        return Life(server.start, warm_ups, loads)

    trials = carry_out(design.serving_rounds(), live, _described, say)
    return ServingSession(trials, Agreement(answers.timed, answers.same))


def _warm_up(server: Server, system: System, design: Design) -> tuple[float, ...]:
    """Loads a server until it gets no faster; returns the answers per second of each round.

    Java compiles frequent code while it runs, and several clients use every path.
    """
    rates: list[float] = []
    while len(rates) < design.most_warm_ups:
        load = _load(server, system, max(design.concurrencies), design.warm_up_seconds)
        is_quiet = bool(rates) and load.answers_per_second < _QUIET * max(rates)
        rates.append(load.answers_per_second)
        if is_quiet:
            break
    return tuple(rates)


def _described(system: System, life: Life) -> str:
    rates = ", ".join(
        f"{load.answers_per_second:.1f}/s x{clients}"
        for clients, load in sorted(life.loads.items())
    )
    return f"ready {life.start.ready_seconds:.2f} s, {rates}  {system}"


def _load(server: Server, system: System, clients: int, seconds: float) -> LoadResult:
    # No request of a client is left out: DJL Serving lets some wait for their first answer until
    # others have ended.
    try:
        return drive_from_own_process(
            server.port,
            LoadSpecification(
                bodies=BODIES,
                clients=clients,
                seconds=seconds,
                keep_up=system.takes_batches,
                timeout_seconds=_TIMEOUT_SECONDS,
            ),
        )
    except BenchmarkError as error:
        raise BenchmarkError(f"{system}: {error}\n{server.recent_output()}") from None
