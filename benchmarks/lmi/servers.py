"""Starts one server, and measures the time until it is ready and until its first answer."""

import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.errors import BenchmarkError
from benchmarks.lmi import djl
from benchmarks.lmi.design import System
from benchmarks.lmi.djl import DjlServing
from benchmarks.lmi.prompts import BODIES
from benchmarks.load import LoadSpecification, drive
from benchmarks.processes import BackgroundProcess, answers_ping, free_port
from benchmarks.program import ROOT
from slipway.embedded_aws.hosting.families import (
    container_environment,
)
from slipway.embedded_aws.hosting.families.lmi import djl_serving
from slipway.embedded_aws.hosting.families.program import ContainerProgram

SAMPLE = ROOT / "samples" / "gpt2-autocomplete" / "model"
_START_SECONDS = 180.0
# Far below the time to ready, which is a second or more.
_POLL_SECONDS = 0.005
_ANSWER_SECONDS = 60.0
_REGION = "us-east-1"
_SERVE = (sys.executable, "-m", "containers.tensorrt", "serve")


@dataclass(frozen=True)
class Start:
    """The start of one server, in seconds from starting its process."""

    ready_seconds: float  # to the first 200 of /ping
    answered_seconds: float  # to the end of the first answer, which is requested at once


class Server(BackgroundProcess):
    """A running server, with its files and its log in an empty folder."""

    def __init__(
        self,
        system: System,
        folder: Path,
        djl_home: DjlServing,
        *,
        threads: int,
        max_batch_size: int,
    ) -> None:
        self.port = free_port()
        batch = max_batch_size if system.takes_batches else 1
        if system.is_djl:
            program = _djl_program(djl_home)
            model = folder / "model"
            model.mkdir()
            files = djl.package(system, SAMPLE, threads=threads, max_batch_size=batch)
            for name, content in files.items():
                (model / name).write_bytes(content)
            # The package's directory is on the path anyway. If it is named, the embedded AWS keeps
            # PYTHONPATH, which it removes if the project is its only entry.
            path = os.pathsep.join((str(ROOT), str(model)))
            declared = {"PYTHONPATH": path, **_thread_variables(threads)}
        else:
            program, model = ContainerProgram(_SERVE), SAMPLE
            declared = {
                "SLIPWAY_MAX_BATCH_SIZE": str(batch),
                "SLIPWAY_INTRA_OP_THREADS": str(threads),
            }
        home = folder / "home"
        home.mkdir()
        variables = container_environment(
            program=program,
            declared=declared,
            region=_REGION,
            home=home,
            connection=None,
        ) | {"SAGEMAKER_BIND_TO_PORT": str(self.port), "SM_MODEL_DIR": str(model)}
        started_at = time.perf_counter()
        super().__init__(program.command, home, variables, folder / "log")
        # DJL Serving listens only once the model is loaded; Slipway's server answers 503 first.
        self.wait_until(lambda: answers_ping(self.port), _START_SECONDS, poll_seconds=_POLL_SECONDS)
        ready_at = time.perf_counter()
        try:
            self.ask(BODIES[0])
        except BaseException:
            self.stop()
            raise
        answered_at = time.perf_counter()
        self.start = Start(ready_at - started_at, answered_at - started_at)

    def ask(self, body: str) -> str:
        load = LoadSpecification([body], 1, keep_up=False, timeout_seconds=_ANSWER_SECONDS)
        try:
            ((_, answer, _),) = drive(self.port, load).answers
        except BenchmarkError as error:
            raise BenchmarkError(f"{error}\n{self.recent_output()}") from None
        return answer


def _djl_program(home: DjlServing) -> ContainerProgram:
    found = {
        **os.environ,
        "DJL_SERVING_HOME": str(home.home),
        "SLIPWAY_DJL_PYTHON": home.python,
    }
    return ContainerProgram(djl_serving.COMMAND, djl_serving.image_environment(found))


def _thread_variables(threads: int) -> dict[str, str]:
    # Without these variables, DJL Serving's start script limits PyTorch to one thread.
    return dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), str(threads))
