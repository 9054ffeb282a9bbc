"""Containers of Slipway's images, and a client in the network of one."""

import base64
import contextlib
import json
import secrets
import subprocess
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slipway.embedded_aws.containers.engine import Engine
from tests.support.starts import count_start
from tests.support.waiting import eventually

PATIENCE_SECONDS = 60.0
PYTHON = "/opt/slipway/venv/bin/python3"
# Reads one request a line and prints one answer a line. `until` asks again and again, and gives all
# statuses in their order, each once. `hold` sends a request without the end of its body, and the
# path `finish` sends that end and gives the answer.
_CLIENT = """
import base64, http.client, json, sys, time
def ask(request):
    path = request["path"]
    connection = http.client.HTTPConnection("127.0.0.1", request["port"], timeout=60)
    try:
        connection.request(
            request["method"], path, base64.b64decode(request["body"]), request["headers"]
        )
        answer = connection.getresponse()
        return answer.status, base64.b64encode(answer.read()).decode()
    except OSError as error:
        return 0, base64.b64encode(repr(error).encode()).decode()
    finally:
        connection.close()
def hold(request):
    global held
    body = base64.b64decode(request["body"])
    connection = http.client.HTTPConnection("127.0.0.1", request["port"], timeout=60)
    connection.putrequest("POST", request["path"])
    for name, value in {**request["headers"], "Content-Length": str(len(body))}.items():
        connection.putheader(name, value)
    sent = len(body) - request["hold"]
    connection.endheaders(body[:sent])
    held = connection, body[sent:]
def finish():
    connection, rest = held
    try:
        if rest:
            connection.send(rest)
        answer = connection.getresponse()
        return answer.status, base64.b64encode(answer.read()).decode()
    except (OSError, http.client.HTTPException) as error:
        return 0, base64.b64encode(repr(error).encode()).decode()
    finally:
        connection.close()
for line in sys.stdin:
    request = json.loads(line)
    if request["hold"] is not None:
        hold(request)
        print(json.dumps([[], ""]), flush=True)
        continue
    if request["path"] == "finish":
        status, body = finish()
        print(json.dumps([[status], body]), flush=True)
        continue
    statuses, until = [], time.monotonic() + request["patience"]
    while True:
        status, body = ask(request)
        if status not in statuses:
            statuses.append(status)
        if request["until"] in (None, status) or time.monotonic() > until:
            break
        time.sleep(0.002)
    print(json.dumps([statuses, body]), flush=True)
"""


@dataclass(frozen=True)
class Answer:
    """What a container answered; a status of 0 is a connection that was not made or broke."""

    status: int
    body: bytes

    # Any: JSON.
    def json(self) -> Any:
        return json.loads(self.body)


class Client:
    """A client in a network of its own, without a way out, which containers can join.

    The image has the Python.
    """

    def __init__(self, engine: Engine, image: str, python: str = PYTHON) -> None:
        self.name = _new_name()
        self._lock = threading.Lock()
        options = ("--rm", "--interactive", "--network", "none", "--name", self.name)
        self._process = subprocess.Popen(
            engine.words("run", *options, "--entrypoint", python, image, "-u", "-c", _CLIENT),
            env=engine.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        # It answers when it runs, so that its network is there to join.
        self.ask("/", port=1)

    def ask(self, path: str, body: bytes | None = None, **options: Any) -> Answer:
        """Sends a request, with other `headers` or to another `port` than a model's."""
        (status,), answer = self._send(path, body, **options)
        return Answer(status, answer)

    def hold(self, path: str, body: bytes, unsent: int) -> None:
        """Sends a request without its last `unsent` bytes; `finish` sends them."""
        self._send(path, body, hold=unsent)

    def finish(self) -> Answer:
        """Sends the rest of the request that is held; returns its answer."""
        return self.ask("finish")

    def statuses(
        self, path: str, until: int, *, port: int = 8080, patience: float = PATIENCE_SECONDS
    ) -> list[int]:
        """Asks until a status; returns every status that came, in the order of their first."""
        return self._send(path, port=port, until=until, patience=patience)[0]

    def _send(
        self, path: str, body: bytes | None = None, **options: Any
    ) -> tuple[list[int], bytes]:
        request = {
            "method": "GET" if body is None else "POST",
            "path": path,
            "port": 8080,
            "body": base64.b64encode(body or b"").decode(),
            "headers": {"Content-Type": "application/json"},
            "hold": None,
            "until": None,
            "patience": 0,
            **options,
        }
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._lock:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            statuses, content = json.loads(self._process.stdout.readline())
        return statuses, base64.b64decode(content)

    def close(self) -> None:
        # The end of its input is the client's end.
        self._process.communicate(timeout=PATIENCE_SECONDS)


# Any: JSON.
def image_config(engine: Engine, name: str) -> dict[str, Any]:
    """Returns how an image's containers start."""
    told = engine.answer("image", "inspect", "--format", "{{json .Config}}", name)
    config: dict[str, Any] = json.loads(told)
    return config


class Container:
    def __init__(self, engine: Engine, name: str) -> None:
        self.engine = engine
        self.name = name

    def state(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(
            self.engine.answer("inspect", "--format", "{{json .State}}", self.name)
        )
        return found

    def log(self) -> list[str]:
        return self.engine.answer("logs", self.name).splitlines()

    def until_ready(self, client: Client, port: int = 8080) -> list[int]:
        """Waits for a 200 on /ping; returns every status before it, and it, each once."""
        seen: list[int] = []

        def is_ready() -> bool:
            seen.extend(client.statuses("/ping", 200, port=port, patience=1))
            assert self.state()["Running"], self.log()
            return seen[-1] == 200

        eventually(is_ready, PATIENCE_SECONDS)
        return list(dict.fromkeys(seen))

    def restart(self) -> None:
        self.engine.answer("start", self.name)

    def signal(self, name: str) -> None:
        self.engine.answer("kill", "--signal", name, self.name)

    def exit_code(self) -> int:
        """Waits for the end; returns the exit code."""
        return int(self.engine.answer("wait", self.name))


@contextlib.contextmanager
def container(
    engine: Engine, image: str, *options: str, command: Sequence[str] = ()
) -> Iterator[Container]:
    """Starts a container of an image; yields it, and removes it.

    `options` are those of `docker run`.
    """
    count_start("server")
    name = _new_name()
    engine.answer("run", "--detach", "--name", name, *options, image, *command)
    try:
        yield Container(engine, name)
    finally:
        engine.answer("rm", "--force", "--volumes", name)


def isolated(client: Client, model: Path, **variables: str) -> list[str]:
    return [
        f"--network=container:{client.name}",
        "--read-only",
        "--tmpfs=/tmp",
        "--user=1000",
        "--cap-drop=ALL",
        "--security-opt=no-new-privileges",
        f"--volume={model}:/opt/ml/model:ro",
        *(f"--env={name}={value}" for name, value in variables.items()),
    ]


def _new_name() -> str:
    return f"slipway-{secrets.token_hex(6)}"
