"""The servers of a benchmark, each as the processes that a container would hold."""

import contextlib
import json
import operator
import os
import sys
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Generic, Protocol, Self, TypeVar

from benchmarks.baselines.stack import Application, Layout, PublishedStack
from benchmarks.errors import BenchmarkError
from benchmarks.estimates import pooled_latencies
from benchmarks.load import LoadResult, LoadSpecification, drive_from_own_process
from benchmarks.processes import BackgroundProcess
from benchmarks.program import ROOT, Say
from benchmarks.report import MILLISECONDS, Document, counted, items

TIMEOUT_SECONDS = 300
"""For one request, at every server: slow answers are to be measured, not to be refused."""

PACKAGES = ("numpy", "onnxruntime", "starlette", "tokenizers", "torch", "transformers", "uvicorn")
"""Python distributions that take part where a container is compared with PyTorch."""

Key = TypeVar("Key", bound=Hashable)
Answer = TypeVar("Answer")

_START_SECONDS = 300.0
# Of the load whose answers are compared before anything is timed.
_COMPARING_CLIENTS = 4
_LEFT_OUT = (
    "BASELINE_",
    "GUNICORN_",
    "HF_",
    "KMP_",
    "MKL_",
    "OMP_",
    "OPENBLAS_",
    "ORT_",
    "PYTHON",
    "SAGEMAKER_",
    "SLIPWAY_",
    "SM_",
    "TORCH",
    "TRANSFORMERS_",
    "WEB_CONCURRENCY",
)


def server_variables(environ: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environ.items() if not name.startswith(_LEFT_OUT)}


def shared_settings(model_directory: Path) -> dict[str, str]:
    """Returns the settings that every container gets, as an endpoint's container would."""
    return {
        "SAGEMAKER_BIND_TO_PORT": "0",
        "SM_MODEL_DIR": str(model_directory),
        "SLIPWAY_REQUEST_TIMEOUT_SECONDS": str(TIMEOUT_SECONDS),
    }


class LoopbackServer(BackgroundProcess):
    """A program in Python whose output says, to `find_port`, which port it serves."""

    def __init__(
        self,
        arguments: Sequence[str],
        log: Path,
        variables: Mapping[str, str],
        find_port: Callable[[str], int | None],
    ) -> None:
        super().__init__((sys.executable, *arguments), ROOT, variables, log)
        self.port = self.wait_until(lambda: find_port(self.output()), _START_SECONDS)


def printed_port(output: str) -> int | None:
    return int(output) if output.endswith("\n") else None


def logged_port(output: str) -> int | None:
    events: dict[str, dict[str, Any]] = {}
    for line in output.splitlines():
        # A half-written line, or no line of the log.
        with contextlib.suppress(ValueError, KeyError, TypeError):
            fields = json.loads(line)
            events[fields["event"]] = fields
    is_ready = {"listening", "model_loaded"} <= events.keys()
    return int(events["listening"]["port"]) if is_ready else None


class RunningServer(Protocol):
    port: int

    def recent_output(self) -> str: ...

    def stop(self) -> None: ...


def idle_server(log: Path, delay_milliseconds: float = 0.0) -> LoopbackServer:
    program = (
        "-m",
        "slipway.benchmarking.idle_server",
        "--delay-milliseconds",
        str(delay_milliseconds),
    )
    return LoopbackServer(program, log, server_variables(os.environ), printed_port)


def start_container(
    arguments: Sequence[str], log: Path, settings: Mapping[str, str]
) -> LoopbackServer:
    """Starts a container's own program, or a program with the same settings and log."""
    variables = {**server_variables(os.environ), **settings}
    return LoopbackServer(arguments, log, variables, logged_port)


def start_published(folder: Path, application: Application, layout: Layout) -> PublishedStack:
    folder.mkdir()
    return PublishedStack(
        folder,
        application,
        layout=layout,
        environment=server_variables(os.environ),
        timeout_seconds=TIMEOUT_SECONDS,
    )


class ServerPool(Generic[Key]):
    """Servers that are each started when they are first needed; leaving the context stops them all.

    They all run at the same time, but only one is measured at a time: a waiting server takes no
    processor. The text of a key is the server's title.
    """

    def __init__(self, start: Callable[[Key], RunningServer], say: Say) -> None:
        self._start, self._say = start, say
        self._running: dict[Key, RunningServer] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def drive(self, key: Key, title: str, load: LoadSpecification) -> LoadResult:
        """Drives a load against a server; `title` is the measurement's, for the error."""
        if key not in self._running:
            self._say(f"starting {key}")
            server = self._start(key)
            self._stack.callback(server.stop)
            self._running[key] = server
        try:
            return drive_from_own_process(self._running[key].port, load)
        except BenchmarkError as error:
            log = self._running[key].recent_output()
            raise BenchmarkError(f"{title}: {error}\n{log}") from None


class Answers(Generic[Answer]):
    """The answers to a benchmark's requests, of which the first server's are the right ones.

    `read` parses the answer to the request with an index, and `agrees` compares it with the right
    one.
    """

    def __init__(
        self,
        read: Callable[[int, str], Answer],
        agrees: Callable[[Answer, Answer], bool] = operator.eq,
    ) -> None:
        self._read, self._agrees = read, agrees
        self._right: dict[int, Answer] = {}
        self.compared = 0

    def compare(self, title: str, answers: Iterable[tuple[int, str, int]]) -> None:
        """Compares answers, each with its index and its count, with the right ones.

        An answer that differs is an error, because the times would be of different work.
        """
        for index, answer, count in answers:
            found = self._read(index, answer)
            right = self._right.setdefault(index, found)
            if not self._agrees(found, right):
                raise BenchmarkError(
                    f"{title} answers {found!r} to request {index}, and the first server answers "
                    f"{right!r}: they do not compute the same model"
                )
            self.compared += count

    def same(
        self,
        answers: Iterable[tuple[int, str, int]],
        agrees: Callable[[Answer, Answer], bool] | None = None,
    ) -> int:
        """Returns how many answers are the right ones, or agree with those."""
        return sum(
            count
            for index, answer, count in answers
            if (agrees or self._agrees)(self._read(index, answer), self._right[index])
        )


def compare_before(
    pool: ServerPool[Key], key: Key, title: str, bodies: Sequence[str], answers: Answers[Answer]
) -> None:
    """Sends a server every request once, which also warms it up, and compares its answers."""
    clients = min(_COMPARING_CLIENTS, len(bodies))
    load = LoadSpecification(
        bodies,
        clients,
        requests=len(bodies) // clients,
        keep_up=False,
        timeout_seconds=TIMEOUT_SECONDS,
    )
    answers.compare(title, pool.drive(key, title, load).answers)


_SECONDS = 2.0
_WARM_UP_REQUESTS = 100


# Any: JSON.
def measure_driver(
    bodies: Sequence[str],
    concurrencies: Iterable[int],
    names: Sequence[str],
    *,
    seconds: float | None,
    log: Path,
) -> list[dict[str, Any]]:
    found = []
    with idle_server(log) as server:
        for clients in concurrencies:
            load = LoadSpecification(
                bodies=tuple(bodies),
                clients=clients,
                warm_up_requests=_WARM_UP_REQUESTS,
                seconds=seconds or _SECONDS,
            )
            try:
                result = drive_from_own_process(server.port, load)
            except BenchmarkError as error:
                raise BenchmarkError(f"the load driver: {error}") from None
            # Of the driver's processor time, the requests of the warm-up have their part.
            sent = sum(count for _, _, count in result.answers)
            used_milliseconds = result.driver_processor_seconds / sent * MILLISECONDS
            found.append(
                {
                    "clients": clients,
                    **pooled_latencies([result]).as_json(names),
                    "requests_per_second": round(result.requests_per_second, 1),
                    "processor_milliseconds_per_request": round(used_milliseconds, 3),
                }
            )
    return found


def driver_as_list(driver: Iterable[Document], high: str) -> str:
    return items(
        *(
            f"{counted(each['clients'], 'client')}: p50 {each['p50_milliseconds']:.2f} ms, {high} "
            f"{each[f'{high}_milliseconds']:.2f} ms, "
            f"{each['processor_milliseconds_per_request']:.2f} ms of processor time a request"
            for each in driver
        )
    )
