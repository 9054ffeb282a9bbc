"""Compares the answers of the servers, and measures one cell after the other."""

from dataclasses import dataclass
from pathlib import Path

from benchmarks.load import LoadResult, LoadSpecification
from benchmarks.program import Say
from benchmarks.servers import TIMEOUT_SECONDS, Answers, ServerPool, compare_before
from benchmarks.trials import Trial, carry_out
from benchmarks.triton.design import SERVERS, Cell, Design, Server, System
from benchmarks.triton.queries import QUERIES, body, read_answer
from benchmarks.triton.servers import start_server

# The first to answer, so that every text is compared with the text of transformers.
_REFERENCE = Server(System.GENERATE, 1)


@dataclass(frozen=True)
class Session:
    """The trials, and how many answers were compared with the text of `generate`."""

    trials: tuple[Trial[Cell, LoadResult], ...]
    answers: int


def measure(design: Design, triton: Path, folder: Path, say: Say) -> Session:
    bodies = tuple(map(body, QUERIES))
    answers = Answers(lambda _index, text: read_answer(text))
    with ServerPool[Server](lambda server: start_server(server, folder, triton), say) as servers:

        def drive(cell: Cell) -> LoadResult:
            load = LoadSpecification(
                bodies,
                cell.clients,
                warm_up_requests=2,
                seconds=design.seconds,
                timeout_seconds=TIMEOUT_SECONDS,
            )
            result = servers.drive(cell.server, str(cell), load)
            answers.compare(str(cell), result.answers)
            return result

        for server in sorted(SERVERS, key=lambda each: each != _REFERENCE):
            compare_before(servers, server, str(server), bodies, answers)
            say(f"answers compared  {server}")
        trials = carry_out(
            design.rounds(),
            drive,
            lambda cell, load: f"{load.requests_per_second:7.1f} requests/s  {cell}",
            say,
        )
    return Session(trials, answers.compared)
