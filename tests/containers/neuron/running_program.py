"""The container's program as a process, and a client of it."""

import os
from contextlib import contextmanager

import httpx

from tests.support.logging_programs import PATIENCE_SECONDS, LoggingProgram
from tests.support.starts import count_start

SAMPLE = "samples/bert-qa/model"


def environment(**variables):
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("SLIPWAY", "NEURON", "SAGEMAKER"))
    }
    return inherited | {"SAGEMAKER_BIND_TO_PORT": "0", "SM_MODEL_DIR": SAMPLE, **variables}


@contextmanager
def serving(**variables):
    """Starts the program; yields its process, a client, and where its workers are."""
    count_start("server")
    program = LoggingProgram("containers.neuron", "serve", environment=environment(**variables))
    try:
        url = f"http://127.0.0.1:{program.until('listening')['port']}"
        placed = program.until("workers_placed")
        program.until("model_loaded")
        with httpx.Client(base_url=url, timeout=PATIENCE_SECONDS, trust_env=False) as client:
            yield program.process, client, placed
    finally:
        program.kill()
