"""A predictor that tests steer, and a started server around any predictor."""

import asyncio
import contextlib
import json
import logging
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx

from containers.serving.errors import InvalidRequestError
from containers.serving.json_requests import parse_json_object
from containers.serving.logs import JsonFormatter
from containers.serving.server import ModelServer
from containers.serving.settings import ServingSettings

PATIENCE_SECONDS = 10.0


class EchoPredictor:
    """Answers `{"inputs": [...]}` with the same list; keeps every batch it was given.

    With `gated`, each batch waits until `release` is called for it.
    """

    def __init__(self, *, gated: bool = False, load_error: Exception | None = None) -> None:
        self.batches: list[list[Any]] = []
        self.load_gate = threading.Event()
        self.load_gate.set()
        self._gated = gated
        self._load_error = load_error
        self._permits = threading.Semaphore(0)

    def release(self, batches: int = 1) -> None:
        self._permits.release(batches)

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
        if self._gated:
            assert self._permits.acquire(timeout=PATIENCE_SECONDS)
        if "fail" in batch:
            raise RuntimeError("/secret/path: out of memory")
        return list(batch)

    def render(self, outputs: Sequence[Any]) -> bytes:
        return json.dumps(list(outputs)).encode()


class RunningServer:
    def __init__(self, server: ModelServer, client: httpx.AsyncClient) -> None:
        self.server = server
        self.client = client

    async def post(self, *inputs: Any, **keywords: Any) -> httpx.Response:
        return await self.client.post("/invocations", json={"inputs": list(inputs)}, **keywords)

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
    """Gives other tasks and threads their turn until `condition` holds."""
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
