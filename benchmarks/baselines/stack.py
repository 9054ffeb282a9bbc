"""Starts the baselines: nginx in front of gunicorn's sync workers.

It is the layout of the published GPT-2 case, and of many endpoints. AWS's sample for custom
containers starts both from one script, with one worker per core by default. The published case ran
on one GPU, which its flat throughput shows. The number of workers that serves it best on a CPU is
measured, see `benchmarks.tensorrt.session`. (https://github.com/aws/amazon-sagemaker-examples,
advanced_functionality/scikit_bring_your_own)
"""

from __future__ import annotations

import getpass
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Template

from benchmarks.errors import BenchmarkError
from benchmarks.machine import program_path
from benchmarks.processes import BackgroundProcess, accepts_connections, free_port
from benchmarks.program import ROOT

MODEL_DIRECTORY = "BASELINE_MODEL_DIRECTORY"  # a model with its tokenizer.json
CACHE = "BASELINE_CACHE"
"""`true`: keys and values are kept between steps; `false`: everything is computed again."""
THREADS = "BASELINE_THREADS"  # of PyTorch, in each worker
READY_DIRECTORY = "BASELINE_READY_DIRECTORY"  # each worker puts a file there once it can serve

_TEMPLATE = Path(__file__).with_name("nginx.conf")
_START_SECONDS = 300.0
_NGINX_START_SECONDS = 30.0
# Debian keeps nginx in a folder that only root searches for programs.
_SYSTEM_FOLDERS = ("/usr/local/sbin", "/usr/sbin", "/opt/homebrew/bin")


@dataclass(frozen=True)
class Layout:
    """The published layout's use of the cores: each worker answers one request at a time."""

    workers: int
    threads: int  # PyTorch's, in each worker


def find_nginx() -> str:
    found = shutil.which("nginx", path=os.pathsep.join((program_path(), *_SYSTEM_FOLDERS)))
    if found is None:
        raise BenchmarkError(
            "nginx is not installed, and the published layout has it in front. Install it: "
            "`apt-get install nginx` on Debian and Ubuntu, `brew install nginx` on macOS."
        )
    return found


def nginx_version() -> str:
    # nginx prints it on standard error: "nginx version: nginx/1.22.1".
    printed = subprocess.run(  # noqa: S603  # fixed arguments, no shell
        [find_nginx(), "-v"], capture_output=True, text=True, check=True, timeout=60
    ).stderr
    return printed.rpartition("/")[2].split()[0]


@dataclass(frozen=True)
class Application:
    factory: str  # a call in a module, in gunicorn's notation
    variables: Mapping[str, str]  # beside `THREADS` and `READY_DIRECTORY`


def text_generation(model_directory: Path, *, use_cache: bool) -> Application:
    return Application(
        "benchmarks.baselines.published:create_app()",
        {MODEL_DIRECTORY: str(model_directory), CACHE: "true" if use_cache else "false"},
    )


def question_answering(model_directory: Path) -> Application:
    return Application(
        "benchmarks.baselines.torch_script:create_app()", {MODEL_DIRECTORY: str(model_directory)}
    )


def check_requirements(target: str) -> None:
    """Raises a `BenchmarkError` that names what the baselines lack here and how to install it."""
    find_nginx()
    needed = ("flask", "gunicorn", "safetensors", "torch", "transformers")
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    if missing:
        raise BenchmarkError(
            f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not installed: run "
            f"`make {target}`, or install requirements-bench.txt without its dependencies "
            "(`pip install --no-deps --requirement requirements-bench.txt`)"
        )


def nginx_configuration(folder: Path, port: int, timeout_seconds: float) -> str:
    """Returns the text of nginx's configuration file, whose sockets and logs are in `folder`."""
    # As root, nginx would run its workers as a user who may not read the folder.
    user = f"user {getpass.getuser()};" if os.geteuid() == 0 else ""
    return Template(_TEMPLATE.read_text("utf-8")).substitute(
        folder=folder, port=port, user=user, timeout_seconds=round(timeout_seconds)
    )


class PublishedStack:
    """nginx and gunicorn with a Flask application, ready to serve.

    The empty folder is for the socket, the logs and nginx's temporary files. The environment is
    both programs', and the application's variables are added. A request may take as long as the
    time-out, waiting included.
    """

    def __init__(
        self,
        folder: Path,
        application: Application,
        *,
        layout: Layout,
        environment: Mapping[str, str],
        timeout_seconds: float,
    ) -> None:
        self.port = free_port()
        ready = folder / "ready"
        ready.mkdir()
        configuration = folder / "nginx.conf"
        configuration.write_text(nginx_configuration(folder, self.port, timeout_seconds), "utf-8")
        gunicorn = (
            sys.executable,
            "-m",
            "gunicorn",
            "--worker-class",
            "sync",
            "--workers",
            str(layout.workers),
            "--bind",
            f"unix:{folder / 'gunicorn.sock'}",
            "--timeout",
            str(round(timeout_seconds)),
            "--no-control-socket",
            application.factory,
        )
        variables = {
            **environment,
            # PyTorch's own library and the libraries that it calls each have threads of their own.
            "OMP_NUM_THREADS": str(layout.threads),
            "MKL_NUM_THREADS": str(layout.threads),
            **application.variables,
            THREADS: str(layout.threads),
            READY_DIRECTORY: str(ready),
            "HF_HUB_OFFLINE": "1",
        }
        self._processes: list[BackgroundProcess] = []
        try:
            workers = BackgroundProcess(gunicorn, ROOT, variables, folder / "gunicorn.log")
            self._processes.append(workers)
            # `-e` is for messages that it prints before it has read the configuration.
            command = (find_nginx(), "-p", str(folder), "-e", "stderr", "-c", str(configuration))
            proxy = BackgroundProcess(command, folder, environment, folder / "nginx.log")
            self._processes.append(proxy)
            workers.wait_until(lambda: len(list(ready.iterdir())) >= layout.workers, _START_SECONDS)
            proxy.wait_until(lambda: accepts_connections(self.port), _NGINX_START_SECONDS)
        except BaseException:
            self.stop()
            raise

    def recent_output(self) -> str:
        return "\n".join(process.recent_output() for process in self._processes)

    def stop(self) -> None:
        for process in reversed(self._processes):
            process.stop()
