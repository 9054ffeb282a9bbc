"""Starts one server, and measures the time until it is ready and until its first answer."""

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from benchmarks.errors import BenchmarkError
from benchmarks.lmi.design import BODIES, System
from benchmarks.load import LoadSpecification, drive
from benchmarks.processes import BackgroundProcess, answers_ping, free_port
from benchmarks.program import ROOT
from slipway import java_properties
from slipway.embedded_aws.hosting.families import container_environment
from slipway.embedded_aws.hosting.families.lmi import djl_serving
from slipway.embedded_aws.hosting.families.lmi.djl_serving import (
    NotInstalledError,
    find_java,
    is_home,
    server_homes,
    version_of,
)
from slipway.embedded_aws.hosting.families.program import ContainerProgram

SAMPLE = ROOT / "samples" / "gpt2-autocomplete" / "model"
_START_SECONDS = 180.0
# Far below the time to ready, which is a second or more.
_POLL_SECONDS = 0.005
_ANSWER_SECONDS = 60.0
_REGION = "us-east-1"
_SERVE = (sys.executable, "-m", "containers.tensorrt", "serve")
OLDEST = (0, 36)  # version whose own handler runs with the transformers of today, on a CPU
_DOWNLOAD = "https://publish.djl.ai/djl-serving/serving-0.36.0.tar"
_OTHER_PART = "`--part weights` measures the other part without it."
_INSTALL = (
    f"Run `make djl-serving`, or extract {_DOWNLOAD} and set DJL_SERVING_HOME to the absolute path "
    f"of its directory (docs/embedded-aws/lmi.md). {_OTHER_PART}"
)
# Both sides compute with these versions, since others would make another comparison.
_SHARED_PACKAGES = ("numpy", "onnxruntime", "tokenizers")
# Packages that DJL Serving's own handler imports.
_HANDLER_PACKAGES = ("torch", "transformers", "peft", "pillow")
_VERSION_SECONDS = 60
_HANDLER = Path(__file__).parent / "onnx_handler" / "model.py"
MAX_BATCH_DELAY_MILLISECONDS = 10
"""What DJL Serving waits for more requests of a batch, as its own default."""


@dataclass(frozen=True)
class DjlServing:
    """The DJL Serving of this machine, its handlers' interpreter and packages, and its Java."""

    home: Path
    version: str
    python: str
    packages: Mapping[str, str]
    java: str


def find_djl_serving(environ: Mapping[str, str]) -> DjlServing:
    home, version = _find_home(server_homes(environ))
    try:
        java = find_java(environ)
    except NotInstalledError as error:
        raise BenchmarkError(str(error)) from None
    python = environ.get("SLIPWAY_DJL_PYTHON") or sys.executable
    return DjlServing(home, version, python, _packages(python), _java_version(java))


def _find_home(homes: Sequence[Path]) -> tuple[Path, str]:
    if not homes:
        raise BenchmarkError(f"The serving part needs a DJL Serving, and there is none. {_INSTALL}")
    found = []
    for home in homes:
        version = version_of(home)
        if version is None or not is_home(home):
            raise BenchmarkError(
                f"DJL_SERVING_HOME names {home}, which has no program bin/serving with one "
                f"lib/serving-VERSION.jar. {_INSTALL}"
            )
        if tuple(map(int, version.split(".")[:2])) >= OLDEST:
            return home, version
        found.append(version)
    raise BenchmarkError(
        f"There is DJL Serving {', '.join(found)}; the handler that is measured needs "
        f"{'.'.join(map(str, OLDEST))} or later. {_INSTALL}"
    )


def _packages(python: str) -> dict[str, str]:
    names = (*_SHARED_PACKAGES, *_HANDLER_PACKAGES)
    script = (
        "from importlib import metadata\nimport sys\nfor name in sys.argv[1:]:\n"
        "    try:\n        print(name, metadata.version(name))\n"
        "    except metadata.PackageNotFoundError:\n        pass\n"
    )
    try:
        printed = subprocess.run(  # noqa: S603  # fixed arguments, no shell
            [python, "-I", "-c", script, *names],
            capture_output=True,
            text=True,
            check=True,
            timeout=_VERSION_SECONDS,
        ).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise BenchmarkError(
            f"SLIPWAY_DJL_PYTHON is {python}, which does not run: {error}. Set it to a Python "
            f"with {', '.join(names)}. {_OTHER_PART}"
        ) from None
    found = dict(line.split() for line in printed.splitlines())
    missing = [name for name in names if name not in found]
    if missing:
        raise BenchmarkError(
            f"{python} has no {', '.join(missing)}, which DJL Serving's handlers import. Set "
            f"SLIPWAY_DJL_PYTHON to a Python that has {', '.join(names)}: `make export` installs "
            f"them in .venv. {_OTHER_PART}"
        )
    own = {name: metadata.version(name) for name in _SHARED_PACKAGES}
    for name, version in own.items():
        if found[name] != version:
            raise BenchmarkError(
                f"{python} has {name} {found[name]} and {sys.executable} has {version}, so that "
                f"the servers would not compute the same. Install {name}=={version} there. "
                f"{_OTHER_PART}"
            )
    return found


def _java_version(java: Path) -> str:
    # On standard error: openjdk version "17.0.17" 2025-10-21
    printed = subprocess.run(  # noqa: S603  # fixed arguments, no shell
        [java, "-version"], capture_output=True, text=True, check=True, timeout=_VERSION_SECONDS
    ).stderr
    return printed.splitlines()[0].partition('"')[2].partition('"')[0] or printed.splitlines()[0]


def package(system: System, model: Path, *, threads: int, max_batch_size: int) -> dict[str, bytes]:
    """Returns the files of a package with one worker, which refers to the weights on the disk."""
    properties = {
        "engine": "Python",
        "minWorkers": "1",
        "maxWorkers": "1",
        "option.model_id": str(model),
    }
    if system.takes_batches:
        properties |= {
            "batch_size": str(max_batch_size),
            "max_batch_delay": str(MAX_BATCH_DELAY_MILLISECONDS),
        }
    if system.is_own_handler:
        properties |= {
            "option.entryPoint": "djl_python.huggingface",
            "option.rolling_batch": "disable",
            "option.dtype": "fp32",
        }
        return {"serving.properties": java_properties.render(properties)}
    properties["option.intra_op_threads"] = str(threads)
    return {
        "model.py": _HANDLER.read_bytes(),
        "serving.properties": java_properties.render(properties),
    }


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
            files = package(system, SAMPLE, threads=threads, max_batch_size=batch)
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
