"""The serving part: each server is started, asked by one client and by several, and stopped."""

import itertools
import random
from dataclasses import dataclass
from pathlib import Path

from benchmarks.errors import BenchmarkError
from benchmarks.lmi.design import BODIES, Design, System, completion
from benchmarks.lmi.servers import DjlServing, Server, Start
from benchmarks.load import LoadResult, LoadSpecification, drive_from_own_process
from benchmarks.program import Say
from benchmarks.servers import Answers
from benchmarks.trials import Trial, carry_out

_TIMEOUT_SECONDS = 120.0
# A round of the warm-up that is faster than the best one by less than this ends it.
_QUIET = 1.02


@dataclass(frozen=True)
class Life:
    """One life of a server: its start, the rates of its warm-up, and the loads by clients."""

    start: Start
    warm_ups: tuple[float, ...]
    loads: dict[int, LoadResult]


@dataclass(frozen=True)
class ServingSession:
    """The trials, and how many of the timed answers were the ones from before the timing."""

    trials: tuple[Trial[System, Life], ...]
    answers: int
    same: int


def measure_serving(
    design: Design, djl_serving: DjlServing, folder: Path, say: Say
) -> ServingSession:
    """Carries out the rounds: one server at a time, a fresh one for each trial."""
    # Random numbers of an experiment, not of a secret.
    generator = random.Random(f"{design.seed} concurrencies")  # noqa: S311
    answers = Answers(completion)
    folders = (folder / str(number) for number in itertools.count())
    timed: list[LoadResult] = []

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
            found = ((index, server.ask(body), 1) for index, body in enumerate(BODIES))
            answers.compare(system, found)
            warm_ups = _warm_up(server, system, design)
            loads = {
                clients: _load(server, system, clients, design.seconds)
                for clients in generator.sample(design.concurrencies, len(design.concurrencies))
            }
        timed.extend(loads.values())
        return Life(server.start, warm_ups, loads)

    trials = carry_out(design.serving_rounds(), live, _described, say)
    # Only counted, because in a batch the runtime may round differently.
    given = [answer for load in timed for answer in load.answers]
    return ServingSession(trials, sum(count for *_, count in given), answers.same(given))


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
