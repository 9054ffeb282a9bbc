"""What the tests ask of the images of each family."""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from slipway.embedded_aws.containers.engine import Engine
from tests.containers.neuron import running_program as neuron
from tests.containers.tensorrt import running_program as tensorrt
from tests.support.containers import Client
from tools.images.build import Built

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Family:
    """A sample model, a request to it, and bounds.

    Args:
        model: the sample.
        variables: of the container.
        request: the body.
        expected: returns the answer of the same program without a container.
        own_mb: the most that an image may add to its base, in MB.
        start_seconds: the longest time up to a 200 on /ping.
        in_flight: the line of the metrics that counts requests without an answer.
        unsent: bytes of a request that a client keeps back, so that it has no answer yet.
        waits: variables with which a whole request waits.
        is_tritons: whether Triton listens. It does so after the start, and has lines of its own.
    """

    model: Path
    variables: Mapping[str, str]
    request: bytes
    # Any: JSON.
    expected: Callable[[Path], Any]
    own_mb: int
    start_seconds: float
    in_flight: str = r"slipway_requests_in_flight (\d)"
    unsent: int = 1
    waits: Mapping[str, str] = field(default_factory=dict)
    is_tritons: bool = False


@dataclass(frozen=True)
class Tried:
    """An image that was built here, and a client of its containers."""

    engine: Engine
    built: Built
    client: Client
    family: Family

    @property
    def tag(self) -> str:
        return self.built.image.tag


_TEXT = json.dumps({"inputs": "The maximum number of"}).encode()
_QUESTION = json.dumps(
    {
        "inputs": {
            "question": "Which region is search-qa in?",
            "context": "The platform team owns search-qa. search-qa is in eu-west-1.",
        }
    }
).encode()
_WORD = json.dumps(
    {"inputs": [{"name": "TEXT", "shape": [1, 1], "datatype": "BYTES", "data": ["instnace"]}]}
).encode()


def _by_tensorrt(directory: Path) -> Any:
    with tensorrt.running_program(directory) as program:
        answer = asyncio.run(
            tensorrt.ask(program.port, _TEXT, **{"Content-Type": "application/json"})
        )
    return answer.json()


def _by_neuron(directory: Path) -> Any:
    del directory
    with neuron.serving() as (_, client, _):
        headers = {"Content-Type": "application/json"}
        answer = client.post("/invocations", content=_QUESTION, headers=headers).json()
    # The base has another ONNX Runtime, which rounds otherwise.
    return {**answer, "score": pytest.approx(answer["score"], rel=1e-5)}


def _by_triton(directory: Path) -> Any:
    """The answer that tests/containers/triton/test_server.py has from the same program."""
    del directory
    text = {"name": "ANSWER", "datatype": "BYTES", "shape": [1, 1], "data": ["instance"]}
    return {"model_name": "model", "model_version": "1", "outputs": [text]}


FAMILIES: Mapping[str, Family] = {
    "tensorrt": Family(
        ROOT / "samples/gpt2-autocomplete/model", {}, _TEXT, _by_tensorrt, 330, start_seconds=20
    ),
    "neuron": Family(
        ROOT / "samples/bert-qa/model", {}, _QUESTION, _by_neuron, 215, start_seconds=20
    ),
    "triton": Family(
        ROOT / "samples/t5-spelling/model",
        {
            "SLIPWAY_INSTANCE_COUNT": "1",
            "SLIPWAY_MAX_INPUT_TOKENS": "32",
            "SLIPWAY_MAX_NEW_TOKENS": "32",
        },
        _WORD,
        _by_triton,
        210,
        start_seconds=40,
        # Triton takes a request with its last byte, and then waits for others of its batch.
        in_flight=r'nv_inference_pending_request_count{model="model",version="1"} (\d)',
        unsent=0,
        waits={"SLIPWAY_MAX_BATCH_DELAY_MICROSECONDS": "3000000"},
        is_tritons=True,
    ),
}
