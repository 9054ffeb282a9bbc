"""A predictor that tests steer, and a started server around any predictor."""

import asyncio
import contextlib
import json
import logging
import ssl
import threading
from collections.abc import AsyncIterator, Callable, Hashable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx

from containers.serving.errors import InvalidRequestError
from containers.serving.events import event
from containers.serving.json_requests import parse_json_object
from containers.serving.logs import JsonFormatter
from containers.serving.predictor import StepResult
from containers.serving.server import ModelServer
from containers.serving.settings import ServingSettings

PATIENCE_SECONDS = 60.0


class _Steered:
    """A predictor whose batches or steps wait with `gated` until `release` is called for each."""

    def __init__(self, gated: bool) -> None:
        self._gated = gated
        # What an input called "fail" raises, in place of an error that the model survives.
        self.fatal_error: Exception | None = None
        self._permits = threading.Semaphore(0)

    def release(self, count: int = 1) -> None:
        self._permits.release(count)

    def load(self, model_dir: Path) -> None:
        pass

    def render(self, outputs: Sequence[Any]) -> bytes:
        return json.dumps(list(outputs)).encode()

    def _compute(self, inputs: Sequence[Any]) -> None:
        if self._gated:
            assert self._permits.acquire(timeout=PATIENCE_SECONDS)
        if "fail" in inputs:
            raise self.fatal_error or RuntimeError("/secret/path: out of memory")


class EchoPredictor(_Steered):
    """Answers `{"inputs": [...]}` with the same list; keeps every batch it was given."""

    def __init__(self, *, gated: bool = False, load_error: Exception | None = None) -> None:
        super().__init__(gated)
        self.batches: list[list[Any]] = []
        self.load_gate = threading.Event()
        self.load_gate.set()
        self._load_error = load_error

    def load(self, model_dir: Path) -> None:
        assert self.load_gate.wait(PATIENCE_SECONDS)
        if self._load_error is not None:
            raise self._load_error

    def parse(self, body: bytes) -> tuple[Any, ...]:
        inputs = parse_json_object(body).get("inputs")
        if not isinstance(inputs, list):
            raise InvalidRequestError("inputs must be an array.")
        return tuple(inputs)

    def predict(self, batch: Sequence[Any]) -> list[Any]:
        self.batches.append(list(batch))
        self._compute(batch)
        return list(batch)


class RunningServer:
    def __init__(self, server: ModelServer, client: httpx.AsyncClient) -> None:
        self.server = server
        self.client = client

    async def post(self, *inputs: Any, **keywords: Any) -> httpx.Response:
        return await self.client.post("/invocations", json={"inputs": list(inputs)}, **keywords)

    async def stream(self, *inputs: Any, **keywords: Any) -> httpx.Response:
        body = {"inputs": list(inputs), "stream": True}
        return await self.client.post("/invocations", json=body, **keywords)

    async def until_ready(self) -> None:
        while (await self.client.get("/ping")).status_code != 200:
            await asyncio.sleep(0)


@contextlib.asynccontextmanager
async def running_server(
    predictor: Any, *, wait_until_ready: bool = True, **settings: Any
) -> AsyncIterator[RunningServer]:
    server = ModelServer(predictor, ServingSettings(port=0, **settings))
    serving = asyncio.create_task(server.serve())
    await server.listening.wait()
    async with httpx.AsyncClient(
        base_url=f"http://127.0.0.1:{server.port}",
        timeout=PATIENCE_SECONDS,
        limits=httpx.Limits(max_connections=64),
        trust_env=False,
        # Without the certificates of public servers, which take 50 ms to read.
        verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
    ) as client:
        running = RunningServer(server, client)
        try:
            if wait_until_ready:
                await running.until_ready()
            yield running
        finally:
            server.stop()
            await serving


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not condition():
            await asyncio.sleep(0.001)


class LogCapture(logging.Handler):
    """Keeps records as the parsed JSON that the log would show."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(JsonFormatter())
        self.lines: list[dict[str, Any]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(json.loads(self.format(record)))

    def events(self, name: str) -> list[dict[str, Any]]:
        return [line for line in self.lines if line["event"] == name]


@contextlib.contextmanager
def captured_logs() -> Iterator[LogCapture]:
    logger = logging.getLogger("containers")
    capture = LogCapture()
    level = logger.level
    logger.addHandler(capture)
    logger.setLevel(logging.INFO)
    try:
        yield capture
    finally:
        logger.removeHandler(capture)
        logger.setLevel(level)


class CountdownPredictor(_Steered):
    """Computes `{"inputs": [[NAME, STEPS], ...]}` in as many steps; keeps who was in each.

    An input may have a third entry, the rows that it takes. The answer to an input is its name.
    An input called "fail" makes its step raise.
    """

    def __init__(self, *, gated: bool = False) -> None:
        super().__init__(gated)
        self.steps: list[list[str]] = []
        self.left: list[str] = []
        self._batch: dict[Hashable, tuple[str, int]] = {}

    def parse(self, body: bytes) -> tuple[Any, ...]:
        document = parse_json_object(body)
        is_streamed = document.get("stream", False)
        return tuple((*each, is_streamed) for each in document["inputs"])

    def parses_long(self, body: bytes) -> bool:
        return False

    def is_streamed(self, inputs: Sequence[Any]) -> bool:
        return inputs[0][-1] is True

    def rows(self, value: Any) -> int:
        # The last entry is whether it is streamed, where it came through `parse`.
        return 1 if len(value) < 3 or isinstance(value[2], bool) else int(value[2])

    def join(self, inputs: Mapping[Hashable, Any]) -> StepResult[str]:
        self._batch |= {key: (value[0], value[1]) for key, value in inputs.items()}
        return self.step(inputs)

    def step(self, only: Mapping[Hashable, Any] | None = None) -> StepResult[str]:
        keys = list(self._batch if only is None else only)
        self.steps.append([self._batch[key][0] for key in keys])
        self._compute(self.steps[-1])
        outputs: dict[Hashable, str] = {}
        pieces: dict[Hashable, bytes] = {}
        for key in keys:
            name, steps = self._batch[key]
            pieces[key] = event(json.dumps(f"{name}{steps}").encode())
            self._batch[key] = (name, steps - 1)
            if steps == 1:
                del self._batch[key]
                outputs[key] = name
        return StepResult(outputs, pieces)

    def leave(self, keys: Sequence[Hashable]) -> None:
        self.left += [self._batch.pop(key)[0] for key in keys if key in self._batch]

    def clear(self) -> None:
        self._batch.clear()
