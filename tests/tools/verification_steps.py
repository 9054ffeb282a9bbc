"""Steps for the tests of the runner: each succeeds, fails or ends its process in its own way."""

import os
import signal
import threading

from benchmarks.errors import BenchmarkError
from benchmarks.processes import BackgroundProcess
from tools.verification.runner import Finding, Order


def find(order: Order) -> Finding:
    print("a library's output")
    (order.folder / "found").write_text(f"{order.seed} {order.seconds} {order.trials}")
    facts = {"quick": str(order.is_quick), "tokens": 3, "nothing": None}
    return Finding(facts, ("system", "requests/s"), (("Slipway", 1.5), ("PyTorch", None)))


def differ(order: Order) -> Finding:
    return Finding({"answers": 8}, problems=("2 of 8 answers are wrong", "one is empty"))


def refuse(order: Order) -> Finding:
    raise BenchmarkError(f"{order.folder.name} is missing: run the step find first")


def fail(order: Order) -> Finding:
    raise ZeroDivisionError("a bug")


def exit_early(order: Order) -> Finding:
    os._exit(7)


def be_killed(order: Order) -> Finding:
    os.kill(os.getpid(), signal.SIGKILL)
    return Finding({})


def interrupt(order: Order) -> Finding:
    os.kill(os.getppid(), signal.SIGTERM)
    return hang(order)


def serve(order: Order) -> Finding:
    command = ("sh", "-c", "echo $$ > server; exec sleep 600")
    with BackgroundProcess(command, order.folder, os.environ, order.folder / "log"):
        return hang(order)


def hang(order: Order) -> Finding:
    threading.Event().wait()
    return Finding({})


STEPS = {
    "find": find,
    "differ": differ,
    "refuse": refuse,
    "fail": fail,
    "exit": exit_early,
    "killed": be_killed,
    "interrupt": interrupt,
    "hang": hang,
    "serve": serve,
}
