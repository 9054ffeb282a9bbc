"""The container's program as a process, its log in a file, and a client of few instructions."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.support.starts import count_start
from tests.support.waiting import eventually

ROOT = Path(__file__).parents[3]
PATIENCE_SECONDS = 60.0


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

    def memory_bytes(self, field="VmHWM"):
        """Resident memory: the most so far, or with VmRSS what it is now."""
        status = Path(f"/proc/{self.process.pid}/status").read_text("ascii")
        [line] = [line for line in status.splitlines() if line.startswith(f"{field}:")]
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


@dataclass(frozen=True)
class Answer:
    """What a client got; a status of 0 is a connection that broke."""

    status: int
    headers: dict[str, str]
    body: bytes
    is_whole: bool

    def json(self):
        return json.loads(self.body)


NO_ANSWER = Answer(0, {}, b"", is_whole=False)


async def ask(port, content, *, path="/invocations", **headers):
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return NO_ANSWER
    lines = {"Host": "x", "Content-Length": str(len(content)), "Connection": "close", **headers}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    try:
        writer.write(f"POST {path} HTTP/1.1\r\n{head}\r\n".encode())
        writer.write(content)
        received = await reader.read()
    except OSError:
        return NO_ANSWER
    finally:
        writer.close()
    return parse_answer(received)


def parse_answer(received):
    """Reads an answer after which the connection was closed."""
    head, separator, body = received.partition(b"\r\n\r\n")
    if not separator:
        return NO_ANSWER
    status_line, *lines = head.decode("ascii").split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    if headers.get("transfer-encoding") == "chunked":
        content = b""
        while body:
            size, separator, rest = body.partition(b"\r\n")
            length = int(size or b"0", 16)
            content += rest[:length]
            if separator and not length:
                return Answer(int(status_line.split()[1]), headers, content, is_whole=True)
            body = rest[length + 2 :]
        return Answer(int(status_line.split()[1]), headers, content, is_whole=False)
    is_whole = len(body) == int(headers["content-length"])
    return Answer(int(status_line.split()[1]), headers, body, is_whole=is_whole)


def request(inputs, *, stream=False, **parameters):
    return json.dumps({"inputs": inputs, "parameters": parameters, "stream": stream}).encode()
