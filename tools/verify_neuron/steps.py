"""Carries out the steps of `make verify-neuron`, each in a process of its own."""

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median

from tokenizers import Tokenizer

from benchmarks.errors import BenchmarkError
from benchmarks.estimates import latencies_of
from benchmarks.execution import run_timed
from benchmarks.load import LoadResult, LoadSpecification, drive_from_own_process
from benchmarks.neuron.design import BERT_BASE, BERT_SMALL
from benchmarks.program import ROOT
from benchmarks.report import MILLISECONDS
from benchmarks.servers import TIMEOUT_SECONDS
from containers.encoders.manifest import QUESTION_ANSWERING
from tools.verification.programs import compile_checkpoint, needed, serving, variables
from tools.verification.runner import Finding, Order
from tools.verify_neuron import comparison
from tools.verify_neuron.device import (
    DTYPE,
    PUBLISHED,
    SEQUENCE_LENGTH,
    WORKER_PYTHON,
    Layout,
    find_device,
    layouts_of,
    worker_python,
)

_PROGRAM = ("-m", "containers.neuron")
_MIB = 2**20


def _layouts(order: Order) -> Sequence[Layout]:
    device = find_device(order.root)
    return layouts_of(device.family, device.cores)


def _job(order: Order, layout: Layout) -> Path:
    return order.folder / "compiled" / layout.name


def _refer(*arguments: object) -> None:
    command = (worker_python(), "-m", "tools.verify_neuron.reference", *map(str, arguments))
    run_timed(command, ROOT, variables())


def make_model(order: Order) -> Finding:
    checkpoint, shape = order.folder / "checkpoint", BERT_SMALL if order.is_quick else BERT_BASE
    for folder in (checkpoint, order.folder / "compiled"):
        shutil.rmtree(folder, ignore_errors=True)
    config = {
        "num_hidden_layers": shape.layers,
        "hidden_size": shape.width,
        "num_attention_heads": shape.heads,
        "intermediate_size": shape.feed_forward,
        "vocab_size": shape.vocabulary,
        # In so small a model, a lost mask differs less than rounding with BERT's usual 0.02.
        "initializer_range": 0.1 if order.is_quick else 0.02,
    }
    _refer(checkpoint, json.dumps(config), order.seed)
    comparison.write_tokenizer(checkpoint / "tokenizer.json")
    size_bytes = (checkpoint / "model.safetensors").stat().st_size
    return Finding({"model": shape.title, "weights (MiB)": round(size_bytes / _MIB)})


def compile_layouts(order: Order) -> Finding:
    checkpoint, rows, problems = needed(order.folder / "checkpoint", "model"), [], []
    for layout in _layouts(order):
        hyperparameters: dict[str, str | int] = {
            "target": layout.family,
            "task": QUESTION_ANSWERING,
            "batch_size": layout.batch_size,
            "sequence_lengths": SEQUENCE_LENGTH,
            "pipeline_cores": layout.cores,
            "dtype": DTYPE,
        }
        python = {WORKER_PYTHON: worker_python()}
        try:
            model, facts = compile_checkpoint(
                _PROGRAM, checkpoint, _job(order, layout), hyperparameters, python
            )
        except BenchmarkError as error:
            problems.append(f"{layout.name}: {error}")
        else:
            size_mib = sum(path.stat().st_size for path in model.glob("*.pt")) / _MIB
            made = (facts["seconds"], round(size_mib, 1))
            rows.append((layout.name, layout.batch_size, layout.cores, *made))
    header = ("layout", "batch", "NeuronCores of a copy", "compilation (s)", "graph (MiB)")
    return Finding({"tokens of a graph": SEQUENCE_LENGTH}, header, rows, problems)


@contextmanager
def _loaded(
    order: Order, layout: Layout, step: str
) -> Iterator[Callable[[LoadSpecification], LoadResult]]:
    """Serves a layout by the container's own program; yields what loads it."""
    model = _job(order, layout) / "model"
    # The compile job writes this file last.
    if not (model / "config.json").is_file():
        raise BenchmarkError("it is not compiled: run the step compile first")
    settings: dict[str, str | int] = {
        WORKER_PYTHON: worker_python(),
        "SLIPWAY_DTYPE": DTYPE,
        "SLIPWAY_MAX_BATCH_SIZE": layout.batch_size,
        "SLIPWAY_MAX_QUEUE_LENGTH": max(256, *(each * clients for each, clients in layout.loads)),
        "SLIPWAY_PIPELINE_CORES": layout.cores,
        "SLIPWAY_SEQUENCE_LENGTH": SEQUENCE_LENGTH,
        "SLIPWAY_WORKERS": layout.workers,
    }
    log = order.folder / f"{step}-{layout.name}.log"
    with serving((*_PROGRAM, "serve"), model, log, settings) as server:
        try:
            yield partial(drive_from_own_process, server.port)
        except BenchmarkError as error:
            raise BenchmarkError(f"{error}\n{server.recent_output()}") from None


def compare_answers(order: Order) -> Finding:
    checkpoint = needed(order.folder / "checkpoint", "model")
    questions = comparison.make_questions(order.seed)
    tokenizer = Tokenizer.from_file(str(checkpoint / "tokenizer.json"))
    encodings = [tokenizer.encode(each["question"], each["context"]) for each in questions]
    file = order.folder / "logits.json"
    file.write_text(json.dumps([(each.ids, each.type_ids) for each in encodings]), "utf-8")
    _refer(checkpoint, file)
    logits = json.loads(file.read_text("utf-8"))
    # Each client sends its own question, so that different lengths share a batch.
    load = LoadSpecification(
        [comparison.body_of(each) for each in questions], len(questions), requests=2
    )
    rows, problems = [], []
    for layout in _layouts(order):
        try:
            with _loaded(order, layout, "answers") as drive:
                answers = drive(load).answers
        except BenchmarkError as error:
            problems.append(f"{layout.name}: {error}")
            continue
        found = [
            comparison.difference(encodings[index], logits[index], text)
            for index, text, _ in answers
        ]
        wrong = sum(each > comparison.TOLERANCE for each in found)
        rows.append((layout.name, len(found), wrong, f"{max(found):.4f}"))
        if wrong:
            problems.append(f"{layout.name}: {wrong} of {len(found)} answers are wrong")
    header = ("layout", "answers", "wrong", "largest difference of ln(score)")
    return Finding({"accepted difference": comparison.TOLERANCE}, header, rows, problems)


def measure_throughput(order: Order) -> Finding:
    """Measures each layout with the loads of benchmarks/neuron.md, one after the other."""
    rows, problems = [], []
    instance_type = find_device(order.root).instance_type
    for layout in _layouts(order):
        published = None if order.is_quick else PUBLISHED.get((instance_type, layout.name))
        try:
            with _loaded(order, layout, "throughput") as drive:
                for sentences, clients in layout.loads:
                    load = LoadSpecification(
                        comparison.make_bodies(sentences, order.seed),
                        clients,
                        warm_up_seconds=order.seconds / 2,
                        seconds=order.seconds,
                        timeout_seconds=TIMEOUT_SECONDS,
                    )
                    figures = _figures([drive(load) for _ in range(order.trials)], sentences)
                    # The published pipeline is full.
                    beside = published if clients > 1 else None
                    rows.append((layout.name, layout.workers, sentences, clients, *figures, beside))
        except BenchmarkError as error:
            problems.append(f"{layout.name}: {error}")
    header = (
        "layout", "workers", "sentences of a request", "clients", "sentences/s (median)",
        "sentences/s (range)", "p50 (ms)", "p95 (ms)", "processors of the driver", "published",
    )  # fmt: skip
    return Finding({}, header, rows, problems)


def _figures(trials: Sequence[LoadResult], sentences: int) -> Sequence[str | float]:
    rates = [sentences * each.requests_per_second for each in trials]
    latencies = latencies_of([latency for each in trials for latency in each.all_latencies_seconds])
    # Near 1, the driver's single interpreter limits the rate.
    busy = max(each.driver_processor_seconds / each.seconds for each in trials)
    times = [round(each * MILLISECONDS, 2) for each in (latencies.p50, latencies.p95)]
    spread = f"{min(rates):.1f} to {max(rates):.1f}"
    return (round(median(rates), 1), spread, *times, round(busy, 2))


STEPS = {
    "model": make_model,
    "compile": compile_layouts,
    "answers": compare_answers,
    "throughput": measure_throughput,
}
