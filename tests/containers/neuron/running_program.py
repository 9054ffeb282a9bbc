"""The container's program as a process, and a client of it."""

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.support.starts import count_start

ROOT = Path(__file__).parents[3]
PATIENCE_SECONDS = 60
COMMAND = (sys.executable, "-m", "containers.neuron", "serve")
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
    """Starts the program; yields it with what it has logged, once the model is loaded."""
    count_start("server")
    with subprocess.Popen(
        COMMAND, cwd=ROOT, env=environment(**variables), stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            seen = []
            while not seen or seen[-1]["event"] != "model_loaded":
                seen.append(json.loads(process.stdout.readline()))
            yield process, seen
        finally:
            process.kill()


def client_of(seen):
    [port] = [line["port"] for line in seen if line["event"] == "listening"]
    return httpx.Client(
        base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE_SECONDS, trust_env=False
    )
