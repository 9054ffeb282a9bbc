"""The supervisor of a container, with a stand-in of an engine's client."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from slipway.embedded_aws.containers.engine import Engine
from slipway.embedded_aws.containers.supervisor import Orders
from slipway.embedded_aws.hosting.fleets.connections import ContainerConnections
from slipway.embedded_aws.hosting.launch.image_launcher import ImageContainer
from tests.support.page_runs import free_port
from tests.support.waiting import eventually

CLIENT = Path(__file__).with_name("engine_client.py")
SERVER = """
import http.server, signal, sys
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
    def log_message(self, *_):
        pass
signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))
print("serving")
http.server.HTTPServer(("127.0.0.1", PORT), Answer).serve_forever()
"""
STUBBORN = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("stubborn")
time.sleep(60)
"""

Start = Callable[..., ImageContainer]


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def start(tmp_path: Path, port: int) -> Start:
    def start(program: str, *, seconds: str = "0", grace_seconds: float = 30) -> ImageContainer:
        inner = free_port()
        engine = Engine("stand-in", (sys.executable, str(CLIENT), str(tmp_path)))
        orders = Orders(
            command=engine.command,
            name="slipway-test",
            create=(seconds, program.replace("PORT", str(inner))),
            port=port,
            container_port=inner,
            python="python3",
            grace_seconds=grace_seconds,
        )
        return ImageContainer(engine, orders, tmp_path, lambda _: None)

    return start


def calls(folder: Path) -> list[str]:
    return (folder / "calls").read_text().splitlines()


def test_requests_reach_it_until_it_is_stopped(start: Start, port: int, tmp_path: Path) -> None:
    container = start(SERVER)
    eventually(ContainerConnections(port).is_healthy)
    container.stop()
    assert (container.exit_status, container.last_lines) == (3, ["serving"])
    assert not ContainerConnections(port).is_healthy()
    assert calls(tmp_path)[-1] == "rm --force"


def test_a_stop_during_the_start_is_not_lost(start: Start, tmp_path: Path) -> None:
    container = start(SERVER, seconds="0.5")
    eventually(lambda: (tmp_path / "seconds").exists())
    container.request_stop()
    # The engine refuses a signal to a container that does not run yet.
    eventually(lambda: "kill --signal=TERM" in calls(tmp_path))
    assert not (tmp_path / "pid").exists()
    assert container.exited.wait(20)
    # -15: the signal may come before the program has a handler.
    assert container.exit_status in (3, 128 + 15)


def test_a_container_that_ignores_sigterm_is_killed(start: Start) -> None:
    container = start(STUBBORN, grace_seconds=0.3)
    eventually(lambda: container.last_lines)
    container.stop()
    assert container.exit_status == 128 + 9


def test_a_container_can_be_killed_at_once(start: Start) -> None:
    container = start(STUBBORN)
    eventually(lambda: container.last_lines)
    container.kill()
    assert container.exited.wait(20)
    assert container.exit_status == 128 + 9


def test_an_engine_that_refuses_is_quoted(start: Start, tmp_path: Path) -> None:
    container = start(SERVER, seconds="absent")
    assert container.exited.wait(20)
    assert (container.exit_status, container.last_lines) == (125, ["Error: no such image"])
    # Whatever a failed `create` may leave.
    assert calls(tmp_path) == ["create --name=slipway-test", "rm --force"]
