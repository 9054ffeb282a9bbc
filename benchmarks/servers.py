"""The servers of a benchmark, each as the processes that a container would hold."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.processes import BackgroundProcess
from benchmarks.program import ROOT

TIMEOUT_SECONDS = 300
"""For one request, at every server: slow answers are to be measured, not to be refused."""

_START_SECONDS = 300.0
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
    """Returns the user's variables without those that change how a server works."""
    return {name: value for name, value in environ.items() if not name.startswith(_LEFT_OUT)}


class ContainerServer:
    """The container's own program, or a program with the same settings and log.

    Args:
        arguments: arguments of Python.
        log: file for its log.
        variables: its environment.

    Raises:
        BenchmarkError: it did not start; the message has its last output.
    """

    def __init__(self, arguments: Sequence[str], log: Path, variables: Mapping[str, str]) -> None:
        command = (sys.executable, *arguments)
        self._process = BackgroundProcess(command, ROOT, variables, log)
        try:
            self._process.wait_until(
                lambda: self._event("model_loaded") is not None, _START_SECONDS
            )
        except BaseException:
            self.stop()
            raise
        listening = self._event("listening") or {}
        self.port = int(str(listening["port"]))

    def recent_output(self) -> str:
        """Returns the last lines of its log."""
        return self._process.recent_output()

    def stop(self) -> None:
        """Stops the server."""
        self._process.stop()

    def _event(self, name: str) -> dict[str, object] | None:
        for line in self._process.output().splitlines():
            try:
                fields = json.loads(line)
            except ValueError:  # a half-written line, or no line of the log
                continue
            if isinstance(fields, dict) and fields.get("event") == name:
                return fields
        return None


class IdleServer:
    """A server that does nothing, to measure the load driver alone.

    Args:
        log: file for its output.
        variables: its environment.
    """

    def __init__(self, log: Path, variables: Mapping[str, str]) -> None:
        command = (sys.executable, "-m", "benchmarks.idle_server")
        self._process = BackgroundProcess(command, ROOT, variables, log)
        try:
            self._process.wait_until(lambda: self._process.output().endswith("\n"), _START_SECONDS)
        except BaseException:
            self.stop()
            raise
        self.port = int(self._process.output())

    def stop(self) -> None:
        """Stops the server."""
        self._process.stop()
