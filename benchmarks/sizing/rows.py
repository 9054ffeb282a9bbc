"""The public rows of latency, with what each of them measured.

- Each row of vLLM sends one of three prompts again and again, and vLLM keeps prompts: after the
  warm-up only a last block of each prompt is computed. Networks with states cannot keep prompts.
- An answer has 600 tokens where clients do not stop early. Where tokens were counted and are
  fewer than 97 % of that, or the use case is known to stop early and nothing was counted, a
  median of the latency belongs to no known number of tokens: such rows are not compared.
- Speculative decoding (`eagle3`) depends on the draft and on the text: such rows are not compared.
- TGI's rows do not say how long the prompts are. `PROMPT_TOKENS_OF_TGI` stands for them; what it
  is wrong by is in the efficiency of arithmetic, which was fitted with it.
"""

import csv
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from slipway.config.sections.model import Model
from slipway.sizing.facts import gpu_of
from slipway.sizing.latency import Load, Server
from slipway.sizing.network import Network

FOLDER = Path(__file__).parent
VLLM, TGI = "vllm-sagemaker-2026-03.csv", "tgi-sagemaker-2023-09.csv"
PROMPT_TOKENS_OF_TGI = 250
_LIMIT, _SHORT = 600, 0.97
_LAST_BLOCK = 16
_STOPS_EARLY, _SPECULATES = "tool_calling", "eagle3"
# Where nothing was counted: the mean of the same use case with other models.
_PROMPTS = {"long_context": 1650, "multiturn_chat": 540, "tool_calling": 640}


@dataclass(frozen=True)
class Row:
    """One level of concurrency of one model on one instance type."""

    model: str  # its name on the Hub
    instance_type: str
    network: Network
    server: Server
    load: Load
    seconds: float  # median latency of a request
    label: str  # what tells it from other rows of its pair

    @property
    def pair(self) -> tuple[str, str]:
        return self.model, self.instance_type

    @property
    def is_dense(self) -> bool:
        """Returns whether the goals of dense models are for it: no experts, plain weights."""
        return self.network.kind == ("dense", "plain")


@cache
def networks() -> Mapping[str, Network]:
    models = json.loads((FOLDER / "networks.json").read_text("utf-8"))["models"]
    return {name: _network(row) for name, row in models.items()}


def _network(row: Mapping[str, Any]) -> Network:
    model = Model.model_validate(row["model"])
    return Network.of(model, row.get("stored_bytes", 2.0 * model.parameters), row.get("method"))


def read_rows(paths: tuple[Path, ...] = (FOLDER / VLLM, FOLDER / TGI)) -> list[Row]:
    """Returns the rows that say what they measured; the columns tell whose rows they are."""
    rows: list[Row] = []
    for path in paths:
        with path.open(encoding="utf-8", newline="") as file:
            for cells in csv.DictReader(file):
                rows += _of_tgi(cells) if "virtual_users" in cells else _of_vllm(cells)
    return rows


def _of_vllm(cells: Mapping[str, str]) -> Iterator[Row]:
    counted, use = cells["output_tokens"], cells["use_case"]
    output = float(counted or _LIMIT)
    stops_early = output < _SHORT * _LIMIT or (use == _STOPS_EARLY and not counted)
    if stops_early or cells["optimization"] == _SPECULATES:
        return
    network = networks()[cells["model"]]
    prompt = float(cells["input_tokens"] or _PROMPTS[use])
    new = _LAST_BLOCK if network.reuses_prompts else prompt
    yield Row(
        cells["model"],
        cells["instance"],
        network,
        _server(cells, "vllm"),
        Load(int(cells["concurrency"]), prompt, output, new),
        float(cells["latency_p50_milliseconds"]) / 1000,
        f"{cells['optimization']}, {use}, {cells['concurrency']} clients",
    )


def _of_tgi(cells: Mapping[str, str]) -> Iterator[Row]:
    yield Row(
        cells["model"],
        cells["instance"],
        networks()[cells["model"]],
        _server(cells, "tgi"),
        Load(int(cells["virtual_users"]), PROMPT_TOKENS_OF_TGI, float(cells["generated_tokens"])),
        float(cells["request_milliseconds_median"]) / 1000,
        f"{cells['virtual_users']} clients",
    )


def _server(cells: Mapping[str, str], engine: str) -> Server:
    gpu = gpu_of(cells["instance"])
    if gpu is None:
        raise ValueError(f"no facts of the GPU of {cells['instance']}")
    return Server(gpu, int(cells["tensor_parallel"]), engine)
