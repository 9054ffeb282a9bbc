"""The TensorRT container far beyond its capacity: `python -m benchmarks.overload`.

Each trial starts the container's program on the CPU with the sample's model, and finds its peak in
a closed loop. Then three times as many requests arrive at random times (a Poisson process). Each
takes an idle connection, or opens another one if there is none. So there is no limit on open
connections. Beside them /ping is asked on connections of its own. The driver shares the machine's
cores with the server.

A latency counts from the request's arrival.
"""

import argparse
import asyncio
import json
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Final

from benchmarks.processes import BackgroundProcess
from benchmarks.program import ROOT
from benchmarks.servers import logged_port

_BODY: Final = json.dumps(
    {"inputs": "Amazon S3 bucket", "parameters": {"max_new_tokens": 8}}
).encode()
_REQUEST: Final = b"POST /invocations HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%b" % (
    len(_BODY),
    _BODY,
)
_PING: Final = b"GET /ping HTTP/1.1\r\nHost: x\r\n\r\n"
_CLIENTS: Final = 128
_TIMES_THE_PEAK: Final = 3
_PING_SECONDS: Final = 0.25
# For answers to requests that arrived at the end.
_REST_SECONDS: Final = 60.0
_START_SECONDS: Final = 60.0


class _Exchange(asyncio.Protocol):
    """A connection with one request at a time.

    Args:
        ended: called with the status of an answer, 0 if the connection broke, and with whether the
            connection can be used again.
    """

    def __init__(self) -> None:
        self.ended: Callable[[int, bool], None] = lambda _status, _is_kept: None
        self._received = b""
        self._is_asking = False
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as asyncio has it
        self._transport = transport

    def ask(self, request: bytes) -> None:
        """Sends a request."""
        self._received, self._is_asking = b"", True
        if self._transport.is_closing():
            self._end(0, is_kept=False)
        else:
            self._transport.write(request)

    def close(self) -> None:
        """Ends the connection."""
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, separator, body = self._received.partition(b"\r\n\r\n")
        head = head.lower()
        length = head.partition(b"content-length: ")[2].partition(b"\r\n")[0]
        if separator and len(body) >= int(length):
            self._end(int(head.split()[1]), is_kept=b"connection: close" not in head)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  # asyncio's
        self._end(0, is_kept=False)

    def _end(self, status: int, *, is_kept: bool) -> None:
        if self._is_asking:
            self._is_asking = False
            if not is_kept:
                self._transport.close()
            self.ended(status, is_kept)


class _Load:
    """One load on a port, from this process."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._idle: list[_Exchange] = []
        self.statuses: Counter[int] = Counter()
        # Of answers with 200: when they came, and how long they took.
        self.answers: list[tuple[float, float]] = []
        self.pings: list[tuple[int, float]] = []
        self.open = self.most_open = 0

    async def peak(self, seconds: float) -> float:
        """Returns the answers a second of a closed loop, without its first half."""
        begin = time.monotonic()

        async def insist() -> None:
            while time.monotonic() < begin + 2 * seconds:
                await self.request(time.monotonic())

        await asyncio.gather(*(insist() for _ in range(_CLIENTS)))
        return self.rate(begin + seconds, seconds)

    async def overload(self, rate: float, seconds: float, seed: int) -> float:
        """Drives the open loop; returns the answers a second without its first half."""
        generator = random.Random(seed)  # noqa: S311  # of an experiment, not of a secret
        begin = at = time.monotonic()
        tasks: set[asyncio.Task[None]] = {asyncio.create_task(self._ping(begin + 2 * seconds))}
        while at < begin + 2 * seconds:
            at += generator.expovariate(rate)
            await asyncio.sleep(max(0.0, at - time.monotonic()))
            tasks.add(task := asyncio.create_task(self.request(at)))
            task.add_done_callback(tasks.discard)
        if tasks:
            await asyncio.wait(list(tasks), timeout=_REST_SECONDS)
        return self.rate(begin + seconds, seconds)

    def rate(self, begin: float, seconds: float) -> float:
        """Returns the answers a second of a time."""
        return sum(begin <= at < begin + seconds for at, _ in self.answers) / seconds

    async def request(self, arrived_at: float) -> None:
        """Sends one request."""
        status = await self._ask(_REQUEST)
        self.statuses[status] += 1
        if status == 200:
            now = time.monotonic()
            self.answers.append((now, now - arrived_at))

    async def _ping(self, end: float) -> None:
        while (sent_at := time.monotonic()) < end:
            status = await self._ask(_PING, is_fresh=True)
            self.pings.append((status, time.monotonic() - sent_at))
            await asyncio.sleep(_PING_SECONDS)

    async def _ask(self, request: bytes, *, is_fresh: bool = False) -> int:
        loop = asyncio.get_running_loop()
        if self._idle and not is_fresh:
            connection = self._idle.pop()
        else:
            self.open += 1
            self.most_open = max(self.most_open, self.open)
            try:
                _, connection = await loop.create_connection(_Exchange, "127.0.0.1", self._port)
            except OSError:
                self.open -= 1
                return 0
        answer: asyncio.Future[tuple[int, bool]] = loop.create_future()
        connection.ended = lambda *found: answer.set_result(found)
        connection.ask(request)
        status, is_kept = await answer
        if is_kept and not is_fresh:
            self._idle.append(connection)
        else:
            self.open -= 1
            connection.close()
        return status


def _trial(root: Path, seconds: float, seed: int, log: Path) -> dict[str, float]:
    import uvloop

    model = ROOT / "samples/gpt2-autocomplete/model"
    variables = {**os.environ, "SAGEMAKER_BIND_TO_PORT": "0", "SM_MODEL_DIR": os.fspath(model)}
    program = (sys.executable, "-m", "containers.tensorrt", "serve")
    with (
        BackgroundProcess(program, root, variables, log) as server,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        port = server.wait_until(lambda: logged_port(server.output()), _START_SECONDS)
        peak = runner.run(_Load(port).peak(seconds))
        load = _Load(port)
        goodput = runner.run(load.overload(_TIMES_THE_PEAK * peak, seconds, seed))
    latencies = sorted(latency for _, latency in load.answers)
    return {
        "peak_per_second": round(peak, 1),
        "goodput_percent": round(100 * goodput / peak, 1),
        "p99_seconds": round(latencies[int(len(latencies) * 0.99)], 2),
        "slowest_ping_seconds": round(max(seconds for _, seconds in load.pings), 2),
        "pings": len(load.pings),
        "failed_pings": sum(status != 200 for status, _ in load.pings),
        "refused": load.statuses[503],
        "broken": load.statuses[0],
        "most_connections": load.most_open,
    }


def main() -> None:
    """Prints a line of JSON for each trial, then the medians of each checkout."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.overload", description=__doc__)
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=8.0, help="of each half of each load")
    parser.add_argument(
        "--against", type=Path, default=None, help="another checkout, measured in turn with this"
    )
    options = parser.parse_args()
    roots = [ROOT, *([options.against] if options.against else [])]
    results: dict[Path, list[dict[str, float]]] = {root: [] for root in roots}
    for number in range(options.trials):
        for root in roots:
            with tempfile.TemporaryDirectory() as folder:
                found = _trial(root, options.seconds, number, Path(folder, "log"))
            results[root].append(found)
            print(json.dumps({"checkout": root.name, "cores": os.cpu_count()} | found), flush=True)
    for root, trials in results.items():
        medians = {name: median(trial[name] for trial in trials) for name in trials[0]}
        print(json.dumps({"checkout": root.name, "medians": medians}), flush=True)


if __name__ == "__main__":
    main()
