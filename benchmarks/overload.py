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
import sys
import tempfile
import time
from collections import Counter
from functools import partial
from pathlib import Path
from statistics import median
from typing import Final

from benchmarks.estimates import latencies_of
from benchmarks.load import plain_requests
from benchmarks.processes import BackgroundProcess
from benchmarks.program import ROOT
from benchmarks.servers import logged_port
from slipway.benchmarking.arrivals import poisson_arrivals
from slipway.benchmarking.connections import Connection, LoadError
from slipway.benchmarking.load import ClosedLoad, Load, OpenLoad, run_load

_BODIES: Final = (
    json.dumps({"inputs": "Amazon S3 bucket", "parameters": {"max_new_tokens": 8}}).encode(),
)
_PING: Final = b"GET /ping HTTP/1.1\r\nHost: x\r\n\r\n"
_CLIENTS: Final = 128
_TIMES_THE_PEAK: Final = 3
_PING_SECONDS: Final = 0.25
_ANSWER_SECONDS: Final = 60.0
_START_SECONDS: Final = 60.0


def _load(url: str, given: ClosedLoad | OpenLoad) -> Load:
    """Returns a load that goes on after a failed request."""
    connect = partial(Connection, url, _ANSWER_SECONDS)
    return Load(given, connect, plain_requests(url), lambda _sample: None)


def _rate(load: Load, seconds: float) -> float:
    """Returns the answers a second of the second half of a load, which has so many seconds."""
    samples = [each for client in load.samples for each in client]
    begin = min(each.intended_at for each in samples) + seconds
    answered = (each.ended_at for each in samples if each.failure is None)
    return sum(begin <= at < begin + seconds for at in answered) / seconds


async def _beside_pings(load: Load, url: str, seconds: float) -> list[tuple[bool, float]]:
    """Runs a load; returns whether each /ping was answered with 200, and its seconds."""
    end = time.monotonic() + seconds
    found: list[tuple[bool, float]] = []

    async def ping() -> None:
        while (sent_at := time.monotonic()) < end:
            connection = Connection(url, _ANSWER_SECONDS)
            try:
                is_good = (await connection.exchange(_PING)).failure is None
            except LoadError:
                is_good = False
            connection.close()
            found.append((is_good, time.monotonic() - sent_at))
            await asyncio.sleep(_PING_SECONDS)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(ping())
        tasks.create_task(load.run())
    return found


def _trial(root: Path, seconds: float, seed: int, log: Path) -> dict[str, float]:
    model = ROOT / "samples/gpt2-autocomplete/model"
    variables = {**os.environ, "SAGEMAKER_BIND_TO_PORT": "0", "SM_MODEL_DIR": os.fspath(model)}
    program = (sys.executable, "-m", "containers.tensorrt", "serve")
    with BackgroundProcess(program, root, variables, log) as server:
        port = server.wait_until(lambda: logged_port(server.output()), _START_SECONDS)
        url = f"http://127.0.0.1:{port}"
        closed = ClosedLoad(_BODIES, _CLIENTS, warm_up_seconds=seconds, seconds=seconds)
        warmed = _load(url, closed)
        run_load(warmed.run())
        peak = _rate(warmed, seconds)
        arrivals = poisson_arrivals(_TIMES_THE_PEAK * peak, 2 * seconds, seed)
        load = _load(url, OpenLoad(_BODIES, arrivals, connections=len(arrivals)))
        pings = run_load(_beside_pings(load, url, 2 * seconds))
    samples = [each for client in load.samples for each in client]
    statuses = Counter(each.reply.status if each.reply else 0 for each in samples)
    answered = latencies_of([each.latency_seconds for each in samples if each.failure is None])
    return {
        "peak_per_second": round(peak, 1),
        "goodput_percent": round(100 * _rate(load, seconds) / peak, 1),
        "p99_seconds": round(answered.p99, 2),
        "slowest_ping_seconds": round(max(took for _, took in pings), 2),
        "pings": len(pings),
        "failed_pings": sum(not is_good for is_good, _ in pings),
        "refused": statuses[503],
        "broken": statuses[0],
        "connections": sum(map(bool, load.samples)),
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
