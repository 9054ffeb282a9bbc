"""The container's program as a process, its log in a file, and a client."""

import contextlib
import json
import os
import signal
import ssl
import subprocess
import sys
from pathlib import Path

import httpx

from tests.support.starts import count_start
from tests.support.waiting import eventually

ROOT = Path(__file__).parents[3]
PATIENCE_SECONDS = 60.0
# Nothing is encrypted, but a client makes one unless it gets one, and that takes milliseconds.
_TLS = ssl.create_default_context()


class Program:
    """A started program. Its log goes to a file: a pipe that nobody empties would stop it."""

    def __init__(self, process, log):
        self.process = process
        self._log = log

    def events(self, name):
        """The lines of the log with that event, so far."""
        # The last line may not be whole yet.
        lines = self._log.read_text("utf-8").split("\n")[:-1]
        return [fields for line in lines if (fields := json.loads(line))["event"] == name]

    def until_event(self, name):
        def found():
            events = self.events(name)
            assert events or self.process.poll() is None, f"the program ended without {name}"
            return events

        return eventually(found, PATIENCE_SECONDS)[0]

    @property
    def port(self):
        return int(self.until_event("listening")["port"])

    @property
    def metrics_port(self):
        return int(self.until_event("metrics_listening")["port"])

    def memory_bytes(self):
        """The most resident memory so far."""
        status = Path(f"/proc/{self.process.pid}/status").read_text("ascii")
        [line] = [line for line in status.splitlines() if line.startswith("VmHWM:")]
        return int(line.split()[1]) * 1024

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE_SECONDS)


@contextlib.contextmanager
def running_program(directory, *, before=None, **variables):
    """Starts the program with the sample model; yields it once the model is loaded.

    `before` is called in the new process.
    """
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith("SLIPWAY")
    }
    log = directory / "program.log"
    count_start("server")
    with log.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "containers.tensorrt", "serve"],
            cwd=ROOT,
            env=inherited
            | {
                "SAGEMAKER_BIND_TO_PORT": "0",
                "SM_MODEL_DIR": "samples/gpt2-autocomplete/model",
                **variables,
            },
            stdout=file,
            preexec_fn=before,
        )
    program = Program(process, log)
    try:
        program.until_event("model_loaded")
        yield program
    finally:
        process.kill()
        process.wait()


async def ask(port, content, **headers):
    """Returns the answer to a request; None if the connection is refused or breaks."""
    client = httpx.AsyncClient(trust_env=False, verify=_TLS, timeout=PATIENCE_SECONDS)
    async with client:
        try:
            url = f"http://127.0.0.1:{port}/invocations"
            return await client.post(url, content=content, headers=headers)
        except httpx.TransportError:
            return None


def request(inputs, *, stream=False, **parameters):
    return json.dumps({"inputs": inputs, "parameters": parameters, "stream": stream}).encode()
