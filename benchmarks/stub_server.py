"""A server whose model computes nothing: Slipway's, or an echo on uvicorn to compare it with.

    python -m benchmarks.stub_server slipway

It prints its port, then its processor time in seconds for each line on standard input.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import uvicorn
import uvloop

from containers.serving.json_requests import parse_json_object
from containers.serving.logs import configure_logging
from containers.serving.server import ModelServer
from containers.serving.settings import ServingSettings


class _Stub:
    """A `containers.serving.predictor.Predictor` that answers with the inputs."""

    def load(self, model_dir: Path) -> None:
        pass

    # Any: JSON, as below.
    def parse(self, body: bytes) -> tuple[Any, ...]:
        return tuple(parse_json_object(body)["inputs"])

    def predict(self, batch: Sequence[Any]) -> list[Any]:
        return list(batch)

    def render(self, outputs: Sequence[Any]) -> bytes:
        return json.dumps(list(outputs)).encode()


async def _serve_slipway() -> None:
    settings = ServingSettings(port=0, max_batch_delay_milliseconds=0, max_queue_length=1000)
    server = ModelServer(_Stub(), settings)
    serving = asyncio.create_task(server.serve())
    await server.listening.wait()
    print(server.port, flush=True)
    await serving


# Any: ASGI's own types.
async def _echo(scope: Any, receive: Any, send: Any) -> None:
    body = b""
    while scope["method"] == "POST":
        message = await receive()
        body += message["body"]
        if not message["more_body"]:
            break
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _serve_echo() -> None:
    # asyncio turns Nagle's algorithm off only if the protocol is named; see `server`.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(2048)
        print(listener.getsockname()[1], flush=True)
        # uvicorn as pip installs it: h11 and asyncio.
        settings = uvicorn.Config(
            _echo, http="h11", loop="asyncio", lifespan="off", log_level="warning", access_log=False
        )
        await uvicorn.Server(settings).serve(sockets=[listener])


def _tell_processor_time() -> None:
    for _ in sys.stdin:
        print(time.process_time(), flush=True)
    # Its input ends with the benchmark.
    os._exit(0)


def main(kind: str) -> None:
    # Log lines are written as in a container, and nobody reads them here.
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        configure_logging("INFO", nowhere)
        threading.Thread(target=_tell_processor_time, daemon=True).start()
        if kind == "slipway":
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(_serve_slipway())
        else:
            asyncio.run(_serve_echo())


if __name__ == "__main__":
    main(sys.argv[1])
