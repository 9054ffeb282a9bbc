"""Starts the servers, compares their answers, and measures one cell after the other."""

from dataclasses import dataclass
from pathlib import Path

from benchmarks.baselines.stack import Layout, question_answering
from benchmarks.load import LoadResult, LoadSpecification
from benchmarks.machine import core_count
from benchmarks.models import Model
from benchmarks.neuron.design import Cell, Design, Server, System
from benchmarks.neuron.models import ensure_model
from benchmarks.neuron.workloads import Answer, Request, make_requests, read_answer
from benchmarks.program import Say
from benchmarks.servers import (
    TIMEOUT_SECONDS,
    Answers,
    RunningServer,
    ServerPool,
    compare_before,
    shared_settings,
    start_container,
    start_published,
)
from benchmarks.trials import Trial, carry_out


@dataclass(frozen=True)
class ModelSession:
    model: Model
    tokens: dict[str, list[int]]
    trials: tuple[Trial[Cell, LoadResult], ...]
    answers: int


def start_server(server: Server, model_directory: Path, folder: Path) -> RunningServer:
    """Starts a server of a model with its logs in a folder; both kinds share out the cores."""
    if server.system is System.SLIPWAY:
        settings = {
            **shared_settings(model_directory),
            "SLIPWAY_MAX_BATCH_SIZE": str(server.batch_size),
            "SLIPWAY_WORKERS": str(server.workers),
        }
        program = ("-m", "containers.neuron", "serve")
        return start_container(program, folder / f"{server}.log", settings)
    layout = Layout(server.workers, max(1, core_count() // server.workers))
    return start_published(folder / str(server), question_answering(model_directory), layout)


def measure_model(
    design: Design, model: Model, parent: Path, *, models: Path, say: Say
) -> ModelSession:
    """Measures everything with one model, whose servers' logs and sockets are below `parent`."""
    folder = parent / model.name
    folder.mkdir()
    directory = ensure_model(model, models, design.seed, say)
    requests = {
        workload: make_requests(workload, directory / "tokenizer.json", design.seed)
        for workload in design.workloads
    }
    bodies = {workload: [each.body for each in sent] for workload, sent in requests.items()}
    answers = {workload: _answers(sent) for workload, sent in requests.items()}
    seconds = model.seconds if design.seconds is None else design.seconds
    with ServerPool[Server](lambda key: start_server(key, directory, folder), say) as servers:

        def measure(cell: Cell) -> LoadResult:
            load = LoadSpecification(
                bodies=bodies[cell.workload],
                clients=cell.concurrency,
                warm_up_requests=0 if cell.concurrency == 1 else 1,
                seconds=seconds,
                # The naive server answers in the order of arrival, so later requests change
                # nothing.
                keep_up=cell.server.system is System.SLIPWAY,
                timeout_seconds=TIMEOUT_SECONDS,
            )
            result = servers.drive(cell.server, cell.key, load)
            answers[cell.workload].compare(cell.key, result.answers)
            return result

        for workload in design.workloads:
            for server in workload.servers:
                title = f"{model.name} {workload.name} {server}"
                compare_before(servers, server, title, bodies[workload], answers[workload])
                say(f"answers compared  {title}")
        trials = carry_out(
            design.rounds(model),
            measure,
            lambda cell, load: f"{load.requests_per_second:7.2f} sentences/s  {cell.key}",
            say,
        )
    tokens = {workload.name: [each.tokens for each in sent] for workload, sent in requests.items()}
    return ModelSession(model, tokens, trials, sum(each.compared for each in answers.values()))


def _answers(requests: tuple[Request, ...]) -> Answers[Answer]:
    return Answers(lambda index, text: read_answer(requests[index], text), Answer.agrees_with)
