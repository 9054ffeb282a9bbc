"""The steps of GPT-2: `tools.verification.runner` runs each in a process of this module.

The workload is the published case's: requests of ten texts, 12 tokens in and 30 out.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.estimates import latencies_of
from benchmarks.execution import call_module
from benchmarks.load import LoadResult, LoadSpecification, drive_from_own_process
from benchmarks.models import Model
from benchmarks.servers import TIMEOUT_SECONDS, LoopbackServer
from benchmarks.tensorrt.design import BATCH, GPT2_124M, GPT2_SMALL
from benchmarks.tensorrt.models import ensure_model
from benchmarks.tensorrt.workloads import Request, generated_tokens, make_requests
from benchmarks.trials import shuffled
from containers.tensorrt.compile.gpu import find_gpu
from containers.tensorrt.engine_metadata import ENGINE_FILE
from containers.tensorrt.generation import Prompt, generate
from containers.tensorrt.model_directory import read_config
from containers.tensorrt.runtimes.onnx_runtime import OnnxRuntimeSession
from containers.tensorrt.runtimes.selection import open_session
from containers.tensorrt.settings import GenerationSettings
from tools.verification.programs import compile_checkpoint, logged, needed, serving
from tools.verification.runner import Finding, Order, lacking
from tools.verify_gpu import t5
from tools.verify_gpu.closeness import Tokens, agreement, compare_gpt2

_PROGRAM = ("-m", "containers.tensorrt.start")
MAX_BATCH_SIZE = max(BATCH.concurrencies) * BATCH.texts
_MIB = 2**20
_COMPARED_REQUESTS = 8
_TORCH = ("-m", "tools.verify_gpu.torch_server")
_IN_ORDER = {"SLIPWAY_MAX_BATCH_SIZE": BATCH.texts}
# The name for readers, the program and its settings, which say whether requests form batches
# together. A rehearsal leaves out the second: the others have its program and its settings.
_SYSTEMS: dict[str, tuple[tuple[str, ...], dict[str, str | int]]] = {
    "PyTorch": ((*_TORCH, "--without-cache"), {**_IN_ORDER}),
    "PyTorch with a cache": (_TORCH, {**_IN_ORDER}),
    "PyTorch with a cache, batched": (_TORCH, {"SLIPWAY_MAX_BATCH_SIZE": MAX_BATCH_SIZE}),
}
_SLIPWAY, _BARE, _VLLM = "Slipway", "bare engine loop", "vLLM's loop"


def _concurrencies(order: Order) -> Sequence[int]:
    return (1, 2) if order.is_quick else BATCH.concurrencies


def _shape(order: Order) -> Model:
    return GPT2_SMALL if order.is_quick else GPT2_124M


def _checkpoint(order: Order) -> Path:
    return ensure_model(_shape(order), order.folder / "models", order.seed, print)


def _engine_directory(order: Order) -> Path:
    return needed(order.folder / "gpt2" / "model", "compile")


def _requests(order: Order) -> Sequence[Request]:
    return make_requests(BATCH, _shape(order), order.seed)


def make_model(order: Order) -> Finding:
    directory = _checkpoint(order)
    size = (directory / "model.safetensors").stat().st_size
    return Finding({"model": _shape(order).title, "weights (MiB)": round(size / _MIB)})


def compile_engine(order: Order) -> Finding:
    hyperparameters: dict[str, str | int] = {
        "target": find_gpu().compute_capability,
        "dtype": "fp16",
        "max_batch_size": MAX_BATCH_SIZE,
        "max_input_tokens": BATCH.prompt_tokens,
        "max_new_tokens": BATCH.most_new_tokens,
        "keep_graph": "true",
    }
    _, fields = compile_checkpoint(
        _PROGRAM, _checkpoint(order), order.folder / "gpt2", hyperparameters
    )
    return Finding(
        {
            "target": hyperparameters["target"],
            "export of the graph (s)": fields.get("export_graph_seconds"),
            "build of the engine (s)": fields.get("build_engine_seconds"),
            "engine (MiB)": round(fields.get("engine_bytes", 0) / _MIB),
            "largest logit difference, graph to PyTorch": fields.get("largest_logit_difference"),
        }
    )


@contextmanager
def serve_engine(order: Order, name: str) -> Iterator[LoopbackServer]:
    """Serves the engine by the container's own program; `name` is the log's."""
    settings: dict[str, str | int] = {
        "SLIPWAY_MAX_BATCH_SIZE": MAX_BATCH_SIZE,
        "SLIPWAY_MAX_INPUT_TOKENS": BATCH.prompt_tokens,
        "SLIPWAY_MAX_NEW_TOKENS": BATCH.most_new_tokens,
    }
    program = (*_PROGRAM, "serve")
    log = order.folder / f"{name}.log"
    with serving(program, _engine_directory(order), log, settings) as server:
        yield server


def _load(
    port: int, requests: Sequence[Request], clients: int, *, seconds: float = 0.0
) -> LoadResult:
    specification = LoadSpecification(
        bodies=tuple(request.body for request in requests),
        clients=clients,
        warm_up_requests=1 if seconds else 0,
        seconds=seconds,
        timeout_seconds=TIMEOUT_SECONDS,
    )
    return drive_from_own_process(port, specification)


def compare_tokens(order: Order) -> Finding:
    """Serves the engine, and compares its tokens with ONNX Runtime's and PyTorch's.

    Half precision may choose another token of nearly the same logit. Every token of the engine is
    therefore held against the logits of the float32 model after the same beginning.
    """
    from transformers import GPT2LMHeadModel

    requests = _requests(order)[: 2 if order.is_quick else _COMPARED_REQUESTS]
    prompts = [prompt for request in requests for prompt in request.prompts]
    with serve_engine(order, "tokens") as server:
        chosen = logged(server, "backend_selected")
        alone = _load(server.port, requests, 1)
        together = _load(server.port, requests, len(requests))
    served: list[Mapping[int, Sequence[Tokens]]] = []
    for load in (alone, together):
        answers = {
            index: generated_tokens(requests[index], text) for index, text, _ in load.answers
        }
        served.append(answers)
    # One client sends its first body only, and every other client another one.
    found = [tokens for index in range(len(requests)) for tokens in served[1][index]]
    directory = _checkpoint(order)
    config = read_config(directory)
    reference = OnnxRuntimeSession(directory, config, intra_op_threads=None)
    expected = _generated(reference, prompts, requests[0].new_tokens)
    problems = []
    if chosen.get("backend") != "tensorrt":
        problems.append(f"the back end is {chosen.get('backend')} and not tensorrt")
    near = compare_gpt2(GPT2LMHeadModel.from_pretrained(directory).eval(), prompts, found)
    problems += near.problems
    return Finding(
        {
            "back end": chosen.get("backend"),
            "candidates": chosen.get("candidates"),
            "tokens": sum(map(len, found)),
            "texts equal to ONNX Runtime's (float32)": agreement(found, expected),
            "texts alone equal to texts in a batch": agreement(served[0][0], served[1][0]),
            **near.facts(found),
        },
        problems=problems,
    )


# Any: only the session knows the type of its cache.
def _generated(session: Any, prompts: Sequence[Tokens], new_tokens: int) -> list[Tokens]:
    given = [Prompt(tuple(prompt), new_tokens) for prompt in prompts]
    found = generate(session, given, eos_token_ids=frozenset())
    return [tuple(tokens) for [tokens] in found]


def measure_throughput(order: Order) -> Finding:
    """Measures the engine's server beside PyTorch's servers, in random order.

    All servers run at the same time, and one is measured at a time. The loops of one process, which
    the servers cannot beat, are measured before.
    """
    requests, concurrencies = _requests(order), _concurrencies(order)
    rates: dict[tuple[str, int], list[float]] = {}
    latencies: dict[tuple[str, int], list[float]] = {}
    bare = _bare_loop(order)
    for clients in concurrencies:
        rates[_BARE, clients] = [bare(clients) for _ in range(order.trials)]
    if not lacking({"vllm": ""}):
        rates |= _vllm_rates(order, requests)
    checkpoint = _checkpoint(order)
    with ExitStack() as stack:
        servers = {_SLIPWAY: stack.enter_context(serve_engine(order, "throughput"))}
        for name in [*_SYSTEMS][:: 2 if order.is_quick else 1]:
            program, settings = _SYSTEMS[name]
            log = order.folder / f"{name.replace(' ', '-')}.log"
            servers[name] = stack.enter_context(serving(program, checkpoint, log, settings))
        cells = [(name, clients) for name in servers for clients in concurrencies]
        rates |= {cell: [] for cell in cells}
        for turn in shuffled([cells] * order.trials, order.seed):
            for name, clients in turn:
                load = _load(servers[name].port, requests, clients, seconds=order.seconds)
                rates[name, clients].append(load.requests_per_second)
                latencies.setdefault((name, clients), []).extend(load.all_latencies_seconds)
    rows = [_row(cell, found, latencies.get(cell, ())) for cell, found in rates.items()]
    return Finding(_ratios(rates, concurrencies), header=_HEADER, rows=rows)


_HEADER = (
    "system", "clients", "requests/s (median)", "requests/s (range)", "new tokens/s",
    "average (ms)", "p50 (ms)", "p99 (ms)",
)  # fmt: skip


def _row(
    cell: tuple[str, int], rates: Sequence[float], seconds: Sequence[float]
) -> Sequence[str | int | float | None]:
    name, clients = cell
    tokens = median(rates) * BATCH.texts * BATCH.most_new_tokens
    spread = f"{min(rates):.2f} to {max(rates):.2f}"
    found = latencies_of(seconds) if seconds else None
    times = [found.average, found.p50, found.p99] if found else [None] * 3
    shown = [None if each is None else round(each * 1000, 1) for each in times]
    return (name, clients, round(median(rates), 2), spread, round(tokens), *shown)


def _ratios(rates: Any, concurrencies: Sequence[int]) -> dict[str, str | int | float | None]:
    facts: dict[str, str | int | float | None] = {}
    first, most = concurrencies[0], concurrencies[-1]
    others = [name for name in (*_SYSTEMS, _VLLM) if (name, first) in rates]
    best = {name: max(median(rates[name, each]) for each in concurrencies) for name, _ in rates}
    for name in others:
        for clients in (first, most):
            ratio = median(rates[_SLIPWAY, clients]) / median(rates[name, clients])
            facts[f"Slipway / {name}, {clients} clients"] = round(ratio, 2)
        facts[f"Slipway / {name}, each at its best"] = round(best[_SLIPWAY] / best[name], 2)
    growth = median(rates[_SLIPWAY, most]) / median(rates[_SLIPWAY, first])
    facts[f"Slipway, {most} clients / {first}"] = round(growth, 2)
    facts["Slipway / bare engine loop, at their best"] = round(best[_SLIPWAY] / best[_BARE], 2)
    return facts


def _bare_loop(order: Order) -> Callable[[int], float]:
    """Returns a function that returns the loop's requests per second for some requests together."""
    directory = _engine_directory(order)
    config, requests = read_config(directory), _requests(order)
    settings = GenerationSettings(
        max_input_tokens=BATCH.prompt_tokens, max_new_tokens=BATCH.most_new_tokens
    )
    session = open_session(directory, config, settings, max_batch_size=MAX_BATCH_SIZE)

    def loop(together: int) -> float:
        prompts = [prompt for request in requests[:together] for prompt in request.prompts]
        _generated(session, prompts, BATCH.most_new_tokens)
        times: list[float] = []
        while sum(times) < order.seconds / 2 or not times:
            began_at = time.perf_counter()
            _generated(session, prompts, BATCH.most_new_tokens)
            times.append(time.perf_counter() - began_at)
        return together * len(times) / math.fsum(times)

    return loop


def _vllm_rates(order: Order, requests: Sequence[Request]) -> dict[tuple[str, int], list[float]]:
    together = [
        [prompt for request in requests[:clients] for prompt in request.prompts]
        for clients in _concurrencies(order)
    ]
    document = {
        "checkpoint": str(_checkpoint(order)),
        "batches": together,
        "new_tokens": BATCH.most_new_tokens,
        "seconds": order.seconds / 2,
        "trials": order.trials,
    }
    found = call_module("tools.verify_gpu.vllm_loop", document, limit_seconds=1800)
    return {
        (_VLLM, clients): [clients * rate for rate in trials]
        for clients, trials in zip(_concurrencies(order), found, strict=True)
    }


def compare_memory(order: Order) -> Finding:
    # Here, because no other step needs the plans, whose import takes as long as a small step.
    from tools.verify_gpu import memory

    directory = _engine_directory(order)
    before = memory.used_mib()
    with serve_engine(order, "memory") as server:
        started = memory.used_mib()
        _load(server.port, _requests(order), max(_concurrencies(order)), seconds=order.seconds)
        loaded = memory.used_mib()
        chosen = logged(server, "backend_selected")
    shape = _shape(order)
    estimate = memory.estimated(
        compute_capability=find_gpu().compute_capability,
        shape=shape,
        weights_bytes=(_checkpoint(order) / "model.safetensors").stat().st_size,
        limits=(MAX_BATCH_SIZE, BATCH.prompt_tokens, BATCH.most_new_tokens),
    )
    return Finding(
        {
            "taken at the start (MiB)": started - before,
            "taken after a full load (MiB)": loaded - before,
            "engine (MiB)": round((directory / ENGINE_FILE).stat().st_size / _MIB),
            "caches (MiB)": round(chosen["cache_bytes"] / _MIB),
            **estimate,
        }
    )


STEPS = {
    "model": make_model,
    "compile": compile_engine,
    "tokens": compare_tokens,
    "throughput": measure_throughput,
    "memory": compare_memory,
    "t5-compile": t5.compile_engines,
    "t5-tokens": t5.compare_tokens,
    "t5-triton": t5.serve_on_triton,
}
