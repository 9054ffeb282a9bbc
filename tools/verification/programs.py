"""Runs the containers' programs, with the variables that an endpoint would give them."""

import json
import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.errors import BenchmarkError
from benchmarks.execution import run_timed
from benchmarks.program import ROOT
from benchmarks.servers import LoopbackServer, logged_port, server_variables, shared_settings

_COMPILE_SECONDS = 3600
_STAGE_FIELDS = ("engine_bytes", "largest_logit_difference")
_CHECKPOINT = ("config.json", "generation_config.json", "model.safetensors", "tokenizer.json")


def variables() -> dict[str, str]:
    """Returns the user's variables without those that change how a server works.

    `PYTHONPATH` stays, because TensorRT's modules may lie there.
    """
    kept = {"PYTHONPATH": os.environ["PYTHONPATH"]} if "PYTHONPATH" in os.environ else {}
    return server_variables(os.environ) | kept


def needed(folder: Path, step: str) -> Path:
    """Returns a folder that an earlier step leaves; raises `BenchmarkError` if it has not run."""
    if not folder.is_dir():
        raise BenchmarkError(f"{folder} is missing: run the step {step} first")
    return folder


def compile_checkpoint(
    program: Sequence[str],
    checkpoint: Path,
    job: Path,
    hyperparameters: Mapping[str, str | int],
    settings: Mapping[str, str] | None = None,
) -> tuple[Path, dict[str, Any]]:
    """Compiles a checkpoint as a training job would, by the image's entry point.

    The folder `job` receives the job's directories; an earlier job's are removed. Returns the model
    directory, and facts: the job's "seconds", and the fields of the log's finished stages, added up
    where a stage ran several times. Raises `BenchmarkError` if the job failed.
    """
    shutil.rmtree(job, ignore_errors=True)
    weights, configuration, model = job / "weights", job / "config", job / "model"
    for directory in (weights, configuration, model):
        directory.mkdir(parents=True)
    for name in _CHECKPOINT:
        if (checkpoint / name).is_file():
            os.link(checkpoint / name, weights / name)
    values = {name: str(value) for name, value in hyperparameters.items()}
    (configuration / "hyperparameters.json").write_text(json.dumps(values), "utf-8")
    environment = variables() | {
        "SM_CHANNEL_WEIGHTS": str(weights),
        "SM_INPUT_CONFIG_DIR": str(configuration),
        "SM_MODEL_DIR": str(model),
        "SM_OUTPUT_DIR": str(job / "output"),
        **(settings or {}),
    }
    command = (sys.executable, *program, "compile")
    try:
        timing, log = run_timed(command, ROOT, environment, limit_seconds=_COMPILE_SECONDS)
    except BenchmarkError as error:
        (job / "log").write_text(str(error), "utf-8")
        reason = job / "output" / "failure"
        said = reason.read_text("utf-8") if reason.is_file() else str(error)
        raise BenchmarkError(f"{said}\nThe job's log is {job / 'log'}.") from None
    (job / "log").write_text(log, "utf-8")
    facts: dict[str, Any] = {"seconds": round(timing.seconds, 1)}
    for event in _events(log):
        if event.get("event") == "stage_finished":
            found = {f"{event['stage']}_seconds": event["duration_seconds"]}
            found |= {name: event[name] for name in _STAGE_FIELDS if name in event}
            for name, value in found.items():
                facts[name] = facts.get(name, 0) + value
    return model, facts


def _events(log: str) -> Iterator[dict[str, Any]]:
    for line in log.splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            # A library's own output.
            continue
        if isinstance(event, dict):
            yield event


@contextmanager
def serving(
    program: Sequence[str], model_directory: Path, log: Path, settings: Mapping[str, str | int]
) -> Iterator[LoopbackServer]:
    """Starts a container's program, arguments of Python, and stops it in the end.

    The settings are variables of the container, beside those that every container gets. Raises
    `BenchmarkError` with the last output if it did not start.
    """
    given = {name: str(value) for name, value in settings.items()}
    environment = variables() | shared_settings(model_directory) | given
    with LoopbackServer(program, log, environment, logged_port) as server:
        yield server


def logged(server: LoopbackServer, event: str) -> dict[str, Any]:
    """Returns the first event of a name in a server's log; an empty one if there is none."""
    return next((line for line in _events(server.output()) if line.get("event") == event), {})
