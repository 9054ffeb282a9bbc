"""Batchers and servers that a test lets compute one by one, and requests as bytes."""

import asyncio
import contextlib
import re
from concurrent.futures import ThreadPoolExecutor

from containers.serving.batching import Batcher
from containers.serving.continuous import ContinuousBatcher
from containers.serving.queued_batcher import BatchLimits
from tests.support.servers import CountdownPredictor, EchoPredictor, running_server, until

# A wait of this length would hit the time-out of the test that should not wait.
NEVER_SECONDS = 60.0
CHUNKED = b"POST /invocations HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
PING = b"GET /ping HTTP/1.1\r\nHost: x\r\n\r\n"


class Harness:
    def __init__(self, batcher, predictor, running):
        self.batcher = batcher
        self.predictor = predictor
        self.running = running

    def submit(self, *values, seconds=NEVER_SECONDS):
        deadline = asyncio.get_running_loop().time() + seconds
        return asyncio.create_task(self.batcher.submit(values, deadline=deadline))

    async def occupy(self, value="first"):
        """Keeps the executor busy with a batch of its own."""
        task = self.submit(value)
        await until(lambda: [value] in self.predictor.batches)
        return task

    async def begun(self, steps):
        await until(lambda: len(self.predictor.steps) == steps)

    async def queued(self, length):
        await until(lambda: self.batcher.queue_length == length)

    def run_freely(self):
        self.predictor.release(10_000)


@contextlib.asynccontextmanager
async def batching(predictor, *, size=8, delay_seconds=0.0, queue=64):
    batcher_type = ContinuousBatcher if isinstance(predictor, CountdownPredictor) else Batcher
    with ThreadPoolExecutor(16) as executor:
        batcher = batcher_type(
            predictor, BatchLimits(size, delay_seconds, queue), executor=executor
        )
        running = asyncio.create_task(batcher.run())
        harness = Harness(batcher, predictor, running)
        try:
            yield harness
        finally:
            running.cancel()
            await asyncio.wait([running])
            harness.run_freely()


@contextlib.asynccontextmanager
async def full_server():
    """A server that computes a request and has another in its queue of one."""
    predictor = EchoPredictor(gated=True)
    async with running_server(predictor, max_batch_size=1, max_queue_length=1) as running:
        waiting = [asyncio.create_task(running.post("first"))]
        await until(lambda: bool(predictor.batches))
        waiting.append(asyncio.create_task(running.post("second")))
        await until(lambda: running.server.service.queue_length == 1)
        yield running, predictor, waiting


def posted(body=b'{"inputs": [1]}', headers=b"", length=None):
    """A request; `headers` are whole lines, and `length` may be another than the body's."""
    size = len(body) if length is None else length
    head = b"POST /invocations HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n%s\r\n" % (
        size,
        headers,
    )
    return head + body


async def connect(running):
    return await asyncio.open_connection("127.0.0.1", running.server.port)


async def answer(reader):
    head = await reader.readuntil(b"\r\n\r\n")
    [length] = re.findall(rb"content-length: (\d+)", head)
    return head, await reader.readexactly(int(length))
