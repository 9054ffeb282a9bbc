"""Defines the measurements, their goals and their order, and the requests: misspelt queries.

The sample has a token for each byte. The queries have 6 to 20 tokens, 11 on average. The published
case has 9 tokens in and 11 out.
"""

import json
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.errors import BenchmarkError
from benchmarks.program import ROOT
from benchmarks.report import Labelled
from benchmarks.trials import rounds_of
from containers.triton.repository import INPUT, OUTPUT

MODEL_DIRECTORY = ROOT / "samples" / "t5-spelling" / "model"
MAX_BATCH_SIZE = 16  # the batch size of model_configs/t5-spelling.yaml
MAX_TOKENS = 32  # of a query and of an answer, as in that file
COPIES = (1, 2)  # copies of the model in a Triton; that file has 2
GOAL_CLIENTS = 16


class System(Labelled):
    TRITON = "triton", "Slipway on Triton"
    UNBATCHED = "triton-unbatched", "without batches"
    GENERATE = "triton-generate", "`generate` per request"
    CORE = "serving-core", "Slipway's serving core"


@dataclass(frozen=True)
class Server:
    """A server with copies of the model, each a process with one thread that computes."""

    system: System
    copies: int

    def __str__(self) -> str:
        return f"{self.system}-{self.copies}"


SERVERS = (
    *(Server(system, copies) for copies in COPIES for system in System if system != System.CORE),
    Server(System.CORE, 1),
)
"""In the order of the report."""


LEAST_THROUGHPUT_RATIOS = {System.UNBATCHED: 2.5, System.GENERATE: 5.34}
"""Goals with `GOAL_CLIENTS`: least multiple of the requests of another system with as many copies.

5.34 is the published ratio of TensorRT to PyTorch.
"""
MOST_P99_RATIO = 1.0  # goal against either


@dataclass(frozen=True)
class Cell:
    server: Server
    clients: int

    def __str__(self) -> str:
        return f"{self.server} x{self.clients}"


@dataclass(frozen=True)
class Design:
    concurrencies: tuple[int, ...] = (1, 4, 8, GOAL_CLIENTS, 32)
    trials: int = 7
    stated_trials: int = 1
    seconds: float = 4.0
    seed: int = 1
    is_quick: bool = False

    @property
    def cells(self) -> list[Cell]:
        return [Cell(server, clients) for clients in self.concurrencies for server in SERVERS]

    def rounds(self) -> list[list[Cell]]:
        def trials(cell: Cell) -> int:
            is_about = cell.server.system != System.CORE and cell.clients == GOAL_CLIENTS
            return self.trials if is_about else self.stated_trials

        return rounds_of(self.cells, trials, self.seed)


def quick(design: Design) -> Design:
    return replace(
        design,
        concurrencies=(1, GOAL_CLIENTS),
        trials=2,
        stated_trials=1,
        seconds=0.2,
        is_quick=True,
    )


QUERIES = tuple(Path(__file__).with_name("queries.txt").read_text("utf-8").splitlines())
"""Sent in turn; three for each client at 16 clients."""


def token_count(query: str) -> int:
    """Returns the sample's tokens of a query: its bytes, and the end of text."""
    return len(query.encode()) + 1


def body(query: str) -> str:
    return json.dumps(
        {"inputs": [{"name": INPUT, "shape": [1, 1], "datatype": "BYTES", "data": [query]}]}
    )


def read_query(content: bytes) -> str:
    query: str = json.loads(content)["inputs"][0]["data"][0]
    return query


def answer(text: str) -> str:
    """Returns an answer's body, as far as `read_answer` reads it."""
    return json.dumps({"outputs": [{"name": OUTPUT, "data": [text]}]})


def read_answer(content: str) -> str:
    try:
        [output] = json.loads(content)["outputs"]
        [text] = output["data"]
    except (ValueError, TypeError, KeyError):
        text = None
    if not isinstance(text, str):
        raise BenchmarkError(f"not an answer to a query: {content[:500]}")
    return text
