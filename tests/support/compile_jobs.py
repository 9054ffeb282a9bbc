"""A compile job as SageMaker lays it out and runs it: directories, hyperparameters, a process."""

import contextlib
import io
import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.support.processes import is_running
from tests.support.published import safetensors
from tests.support.waiting import eventually

ROOT = Path(__file__).parents[2]
# Importing torch takes most of it, where other processes use the cores too.
PATIENCE_SECONDS = 280


class Job:
    def __init__(self, root: Path, family: str, hyperparameters: Mapping[str, str]) -> None:
        self._family = family
        self._hyperparameters = hyperparameters
        self.weights = root / "input" / "data" / "weights"
        self.input_config = root / "input" / "config"
        self.model = root / "model"
        self.output = root / "output"
        self.modules = root / "modules"
        self.process: subprocess.Popen[str] | None = None
        self.events: list[dict[str, Any]] = []
        self.standard_error = root / "stderr"
        for directory in (self.weights, self.input_config, self.model, self.output, self.modules):
            directory.mkdir(parents=True)
        self.set_hyperparameters()

    def set_hyperparameters(self, **changes: str | None) -> None:
        """The defaults of these tests with changes; None removes one."""
        merged: dict[str, str | None] = {**self._hyperparameters, **changes}
        values = {name: value for name, value in merged.items() if value}
        self.write_hyperparameters(json.dumps(values).encode())

    def write_hyperparameters(self, content: bytes) -> None:
        (self.input_config / "hyperparameters.json").write_bytes(content)

    def hide(self, *packages: str) -> None:
        """Makes packages look as if they were not installed."""
        lines = [f"sys.modules[{package!r}] = None" for package in packages]
        (self.modules / "sitecustomize.py").write_text("\n".join(["import sys", *lines]))

    def stand_in(self, name: str, content: str = "") -> None:
        """Puts a module of this content in place of an installed one."""
        parts = name.split(".")
        for depth in range(1, len(parts)):
            package = self.modules.joinpath(*parts[:depth])
            package.mkdir(exist_ok=True)
            (package / "__init__.py").touch()
        self.modules.joinpath(*parts[:-1], f"{parts[-1]}.py").write_text(content)

    @property
    def directories(self) -> dict[str, str]:
        """The variables that name the job's directories."""
        return {
            "SM_CHANNEL_WEIGHTS": str(self.weights),
            "SM_INPUT_CONFIG_DIR": str(self.input_config),
            "SM_MODEL_DIR": str(self.model),
            "SM_OUTPUT_DIR": str(self.output),
            "PYTHONPATH": str(self.modules),
        }

    def start(
        self, *, env_changes: dict[str, str] | None = None, **options: Any
    ) -> subprocess.Popen[str]:
        environment = os.environ | self.directories | (env_changes or {})
        with self.standard_error.open("w") as standard_error:
            self.process = subprocess.Popen(
                [sys.executable, "-m", f"containers.{self._family}", "compile"],
                cwd=ROOT,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=standard_error,
                text=True,
                **options,
            )
        return self.process

    def run(self, **options: Any) -> int:
        """Runs the job to its end; returns the exit code."""
        process = self.start(**options)
        log, _ = process.communicate(timeout=PATIENCE_SECONDS)
        self.events += [json.loads(line) for line in log.splitlines()]
        # A supervisor that dies silently would look like a refusal.
        assert self.standard_error.read_text() == ""
        return process.returncode

    def run_here(self, program: Callable[[Mapping[str, str]], int], **variables: str) -> int:
        """Runs the program in this process: what the job refuses, it refuses before it starts one.

        Returns the exit code.
        """
        log = io.StringIO()
        root = logging.getLogger()
        handlers, level = root.handlers, root.level
        root.handlers = []
        try:
            with contextlib.redirect_stdout(log):
                status = program({**self.directories, **variables})
        finally:
            root.handlers = handlers
            root.setLevel(level)
        self.events += [json.loads(line) for line in log.getvalue().splitlines()]
        return status

    def refusal(self, status: int) -> str:
        """Why a job that ended so was refused, before it loaded anything large."""
        assert status == 1
        [failed] = self.named("compile_failed")
        assert failed["level"] == "ERROR"
        assert "exception" not in failed
        assert self.failure == failed["message"][:1024]
        assert self.named("stage_started") == []
        assert not self.model.is_dir() or self.model_files == []
        message: str = failed["message"]
        return message

    def until(self, event: str, **fields: object) -> dict[str, Any]:
        """Reads the log up to an event."""
        assert self.process is not None
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.events.append(json.loads(line))
            if {"event": event, **fields}.items() <= self.events[-1].items():
                return self.events[-1]
        raise AssertionError(f"the log ended without {event}: {self.events}")

    def end(self) -> int:
        """Waits for the end of a started job, whose log is read to its end."""
        assert self.process is not None
        assert self.process.stdout is not None
        # `communicate` would not return the lines that `until` has read ahead.
        with self.process.stdout as log:
            self.events += [json.loads(line) for line in log]
        return self.process.wait(timeout=PATIENCE_SECONDS)

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
            # It waits for the end as well.
            self.process.__exit__(None, None, None)

    def named(self, event: str) -> list[dict[str, Any]]:
        return [line for line in self.events if line["event"] == event]

    @property
    def failure(self) -> str:
        return (self.output / "failure").read_text(encoding="utf-8")

    @property
    def model_files(self) -> list[str]:
        return sorted(path.name for path in self.model.iterdir())


def write_weights(directory: Path) -> None:
    """Writes four zeros, for jobs that read no more than the header."""
    (directory / "model.safetensors").write_bytes(safetensors({"weight": ("F32", [4])}))


def until_gone(process_id: int) -> None:
    """Waits until there is no such process, or only what its parent has not asked after."""
    eventually(lambda: not is_running(process_id), seconds=30)
