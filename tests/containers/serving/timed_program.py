"""A server process whose batches take a fixed time, so that its highest throughput is known."""

import asyncio
import time
from pathlib import Path

import uvloop

from containers.serving.logs import configure_logging
from containers.serving.server import ModelServer
from containers.serving.settings import ServingSettings

BATCH_SECONDS = 0.025
MAX_QUEUE_LENGTH = 64


class TimedPredictor:
    def load(self, model_dir):
        pass

    def parse(self, body):
        return (body,)

    def predict(self, batch):
        time.sleep(BATCH_SECONDS)
        return list(batch)

    def render(self, outputs):
        return b"{}"


async def serve():
    server = ModelServer(
        TimedPredictor(), ServingSettings(port=0, max_queue_length=MAX_QUEUE_LENGTH)
    )
    serving = asyncio.create_task(server.serve())
    await server.listening.wait()
    print(server.port, flush=True)
    await serving


if __name__ == "__main__":
    # Log lines are written as in a container, and nobody reads them here.
    with Path("/dev/null").open("w", encoding="utf-8") as nowhere:
        configure_logging("INFO", nowhere)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(serve())
