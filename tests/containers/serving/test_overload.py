"""Far beyond its capacity, a server answers as many requests as it can compute."""

import asyncio
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from containers.serving.settings import ServingSettings
from tests.containers.serving.harness import PING, answer, posted
from tests.containers.serving.timed_program import BATCH_SECONDS, MAX_QUEUE_LENGTH

pytestmark = [pytest.mark.anyio, pytest.mark.size("all")]

ROOT = Path(__file__).parents[3]
PEAK_PER_SECOND = ServingSettings.max_batch_size / BATCH_SECONDS
# Each has one request under way, and asks again at once after a refusal.
CLIENTS = 3 * MAX_QUEUE_LENGTH
WARM_UP_SECONDS, SECONDS = 1.5, 3.0


@pytest.fixture
def port():
    with subprocess.Popen(
        [sys.executable, "-m", "tests.containers.serving.timed_program"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield int(process.stdout.readline())
        finally:
            process.kill()


class Client:
    """Sends one request after the other, on one connection until the server closes it."""

    def __init__(self, port):
        self._port = port
        self._writer = None

    def close(self):
        if self._writer is not None:
            self._writer.close()
        self._writer = None

    async def status(self, request):
        if self._writer is None:
            self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        self._writer.write(request)
        head, _ = await answer(self._reader)
        if b"connection: close" in head:
            self.close()
        return int(head.split()[1])


async def test_clients_that_ignore_retry_after_leave_most_of_the_throughput(port):
    begin = time.monotonic() + WARM_UP_SECONDS
    end = begin + SECONDS
    statuses = Counter()
    pings = []

    async def insist():
        client = Client(port)
        while time.monotonic() < end:
            status = await client.status(posted(b"{}"))
            statuses[status] += begin <= time.monotonic() < end
        client.close()

    async def ping():
        client = Client(port)
        while time.monotonic() < end:
            sent_at = time.monotonic()
            assert await client.status(PING) == 200
            pings.append(time.monotonic() - sent_at)
            await asyncio.sleep(0.01)
        client.close()

    await asyncio.gather(ping(), *(insist() for _ in range(CLIENTS)))
    print(f"{statuses[200] / SECONDS:.0f} of {PEAK_PER_SECOND:.0f} answers a second; {statuses}")
    assert statuses[503] > 0
    assert statuses[200] / SECONDS >= PEAK_PER_SECOND / 2
    assert sorted(pings)[int(len(pings) * 0.99)] < 1.0
