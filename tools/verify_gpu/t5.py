"""The steps of T5: spelling correction, 9 tokens in and 11 out as in the published case."""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.errors import BenchmarkError
from benchmarks.estimates import Latencies, latencies_of
from benchmarks.execution import run_timed
from benchmarks.load import LoadSpecification, drive_from_own_process
from benchmarks.processes import free_port
from benchmarks.program import ROOT
from benchmarks.tensorrt.models import make_tokenizer
from benchmarks.triton.design import body, read_answer
from benchmarks.triton.servers import TritonServer, find_triton
from containers.tensorrt.compile.gpu import find_gpu
from containers.triton.decoding import answers
from containers.triton.model_directory import read_config
from containers.triton.sessions import SessionLimits, open_session
from tools.verification.programs import compile_checkpoint, needed, variables
from tools.verification.runner import Finding, Order
from tools.verify_gpu.closeness import Tokens, compare

_PROGRAM = ("-m", "containers.triton.entry_point")
_PROMPT_TOKENS, _NEW_TOKENS, _ROWS = 9, 11, 16
_CLIENTS = (1, 4, 16)
# What a model on a GPU imports beside what `make triton` installs.
_MODULES = ("tensorrt", "cuda.bindings.runtime")
_MIB = 2**20
_HEADER = ("clients", "requests/s", "p50 (ms)", "p99 (ms)")


def _checkpoint(order: Order) -> Path:
    return order.folder / "t5-checkpoint"


def _prompts(order: Order) -> list[list[int]]:
    vocabulary = json.loads((_checkpoint(order) / "config.json").read_text("utf-8"))["vocab_size"]
    generator = np.random.default_rng(order.seed)
    prompts: list[list[int]] = generator.integers(2, vocabulary, (_ROWS, _PROMPT_TOKENS)).tolist()
    return prompts


def _make_checkpoint(order: Order) -> int:
    """Writes a T5 of t5-small's shape with random weights; returns its number of parameters."""
    import torch
    from transformers import T5Config, T5ForConditionalGeneration

    torch.manual_seed(order.seed)
    small = {"num_layers": 2, "d_model": 64, "d_ff": 128, "num_heads": 2, "d_kv": 32}
    shape: dict[str, int] = {"vocab_size": 512, **small} if order.is_quick else {}
    config = T5Config(decoder_start_token_id=0, **shape)
    model = T5ForConditionalGeneration(config).eval()
    # With their usual size, the embeddings outweigh the layers, and every answer is one token.
    model.shared.weight.data *= 0.03
    directory = _checkpoint(order)
    model.save_pretrained(directory)
    make_tokenizer(config.vocab_size).save(str(directory / "tokenizer.json"))
    return sum(weights.numel() for weights in model.parameters())


def compile_engines(order: Order) -> Finding:
    parameters = _make_checkpoint(order)
    hyperparameters: dict[str, str | int] = {
        "target": find_gpu().compute_capability,
        "dtype": "fp16",
        "max_batch_size": _ROWS,
        "max_input_tokens": _PROMPT_TOKENS,
        "max_new_tokens": _NEW_TOKENS,
    }
    _, fields = compile_checkpoint(
        _PROGRAM, _checkpoint(order), order.folder / "t5", hyperparameters
    )
    return Finding(
        {
            "parameters": parameters,
            "build of both engines (s)": fields.get("build_engine_seconds"),
            "engines (MiB)": round(fields.get("engine_bytes", 0) / _MIB),
            "largest logit difference, graphs to PyTorch": fields.get("largest_logit_difference"),
        }
    )


def _found(order: Order, rows: int = _ROWS) -> tuple[list[Tokens], list[float]]:
    """Decodes with the engines in this process; returns the tokens and the seconds of each turn."""
    directory = needed(order.folder / "t5" / "model", "t5-compile")
    config = read_config(directory)
    limits = SessionLimits(_ROWS, _PROMPT_TOKENS, _NEW_TOKENS, threads=0)
    session = open_session(directory, config, limits)
    prompts = [tuple(prompt) for prompt in _prompts(order)[:rows]]
    seconds: list[float] = []
    while sum(seconds) < order.seconds or len(seconds) < 2:
        began_at = time.perf_counter()
        found: list[Tokens] = list(
            answers(
                session,
                prompts,
                max_new_tokens=_NEW_TOKENS,
                start_token_id=config.start_token_id,
                end_token_ids=config.end_token_ids,
            )
        )
        seconds.append(time.perf_counter() - began_at)
    return found, seconds[1:]


def compare_tokens(order: Order) -> Finding:
    """Compares the engines' tokens with PyTorch's, and times the decode loop without a server."""
    import torch
    from transformers import T5ForConditionalGeneration

    found, batch_seconds = _found(order)
    _, seconds = _found(order, rows=1)
    if any(len(tokens) != _NEW_TOKENS for tokens in found):
        raise BenchmarkError("an answer ended early: take another --seed")
    model = T5ForConditionalGeneration.from_pretrained(_checkpoint(order)).eval()

    # Any: models and tensors of PyTorch.
    def logits(model: Any, ids: Any, tokens: Any) -> Any:
        # Behind the decoder's first token, which is 0.
        shifted = torch.nn.functional.pad(tokens[:, :-1], (1, 0))
        return model(input_ids=ids, decoder_input_ids=shifted).logits

    near = compare(model, _prompts(order), found, logits, lambda _, output: output[:, 1:])
    rows = [
        (clients, round(clients / times.average, 1), *_milliseconds(times))
        for clients, times in ((1, latencies_of(seconds)), (_ROWS, latencies_of(batch_seconds)))
    ]
    return Finding(
        near.facts(found),
        header=("texts together", "texts/s", "p50 (ms)", "p99 (ms)"),
        rows=rows,
        problems=near.problems,
    )


def serve_on_triton(order: Order) -> Finding:
    """Serves the engines on the user's Triton by the container's program, and loads it."""
    directory = needed(order.folder / "t5" / "model", "t5-compile")
    triton = _find_triton()
    port, home = free_port(), order.folder / "triton"
    home.mkdir(exist_ok=True)
    environment = variables() | {
        "SAGEMAKER_BIND_TO_PORT": str(port),
        "SLIPWAY_MAX_BATCH_SIZE": str(_ROWS),
        "SLIPWAY_MAX_INPUT_TOKENS": str(_PROMPT_TOKENS),
        "SLIPWAY_MAX_NEW_TOKENS": str(_NEW_TOKENS),
        "SLIPWAY_TRITON_SERVER": str(triton),
        "SM_MODEL_DIR": str(directory),
    }
    expected, _ = _found(order)
    texts = [" ".join(f"t{token}" for token in prompt) for prompt in _prompts(order)]
    rows, same = [], set[int]()
    with TritonServer((sys.executable, *_PROGRAM, "serve"), port, home, environment) as server:
        for clients in _CLIENTS:
            specification = LoadSpecification(
                tuple(map(body, texts)), clients, warm_up_requests=1, seconds=order.seconds
            )
            load = drive_from_own_process(server.port, specification)
            times = latencies_of(load.all_latencies_seconds)
            rows.append((clients, round(load.requests_per_second, 1), *_milliseconds(times)))
            same |= {
                index
                for index, text, _ in load.answers
                if read_answer(text) == " ".join(f"t{token}" for token in expected[index])
            }
    equal = f"{len(same)} of {len(texts)}"
    return Finding(
        {"texts equal to the loop's": equal},
        header=_HEADER,
        rows=rows,
        problems=[f"only {equal} texts are the loop's"] * (len(same) < len(texts)),
    )


def _find_triton() -> Path:
    """Returns the server's program; raises `BenchmarkError` if its Python lacks modules."""
    triton = find_triton(os.environ)
    python = triton.with_name("python")
    try:
        run_timed((str(python), "-I", "-c", f"import {', '.join(_MODULES)}"), ROOT, variables())
    except BenchmarkError as error:
        raise BenchmarkError(
            f"{error}\nInstall both for Triton's Python, in the versions that are here: "
            f"`{Path(sys.executable).with_name('uv')} pip install --python {python} tensorrt-cu12 "
            "cuda-bindings`."
        ) from None
    return triton


def _milliseconds(times: Latencies) -> tuple[float, float]:
    return round(times.p50 * 1000, 2), round(times.p99 * 1000, 2)
