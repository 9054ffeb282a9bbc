import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

ROOT = Path(__file__).parents[3]
PATIENCE_SECONDS = 20


class Process:
    """A server process and the JSON lines of its log."""

    def __init__(self, popen: subprocess.Popen[str]) -> None:
        self.popen = popen

    def until_event(self, name: str) -> dict[str, Any]:
        assert self.popen.stdout is not None
        for line in self.popen.stdout:
            fields: dict[str, Any] = json.loads(line)
            if fields["event"] == name:
                return fields
        raise AssertionError(f"the process ended without the event {name}")

    def let_go(self) -> None:
        assert self.popen.stdin is not None
        self.popen.stdin.write("\n")
        self.popen.stdin.flush()


@pytest.fixture
def start() -> Iterator[Callable[..., Process]]:
    started: list[subprocess.Popen[str]] = []

    def run(**environment: str) -> Process:
        popen = subprocess.Popen(
            [sys.executable, "-m", "tests.containers.serving.gated_program"],
            cwd=ROOT,
            env=os.environ | {"SAGEMAKER_BIND_TO_PORT": "0"} | environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(popen)
        return Process(popen)

    yield run
    for popen in started:
        popen.kill()
        popen.communicate()


def test_sigterm_during_a_request_answers_it_and_exits_0(start: Callable[..., Process]) -> None:
    process = start()
    port = process.until_event("listening")["port"]
    process.until_event("model_loaded")
    url = f"http://127.0.0.1:{port}"
    with ThreadPoolExecutor(1) as pool, httpx.Client(trust_env=False) as client:
        answer = pool.submit(client.post, f"{url}/invocations", json={})
        process.until_event("predicting")
        process.popen.send_signal(signal.SIGTERM)
        assert process.until_event("draining")["requests_in_flight"] == 1
        process.let_go()
        response = answer.result(PATIENCE_SECONDS)
        assert (response.status_code, response.json()) == (200, "answered")
        assert process.until_event("stopped")["exit_code"] == 0
        assert process.popen.wait(PATIENCE_SECONDS) == 0
        with pytest.raises(httpx.ConnectError):
            client.get(f"{url}/ping")


def test_sigterm_again_and_again_changes_nothing(start: Callable[..., Process]) -> None:
    process = start()
    process.until_event("model_loaded")
    # Up to the very end of the process, when the loop that handles signals is gone.
    while process.popen.poll() is None:
        process.popen.send_signal(signal.SIGTERM)
        time.sleep(0.001)
    assert process.popen.returncode == 0


def test_sigterm_while_loading_exits_0_at_once(start: Callable[..., Process]) -> None:
    process = start(LOAD="endless")
    process.until_event("listening")
    process.popen.send_signal(signal.SIGTERM)
    assert process.until_event("stopped")["exit_code"] == 0
    assert process.popen.wait(PATIENCE_SECONDS) == 0
