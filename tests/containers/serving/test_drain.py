import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import httpx
import pytest

from tests.support.logging_programs import PATIENCE_SECONDS, LoggingProgram


@pytest.fixture
def start():
    with ExitStack() as stack:

        def run(**environment):
            variables = os.environ | {"SAGEMAKER_BIND_TO_PORT": "0"} | environment
            module = "tests.containers.serving.gated_program"
            program = LoggingProgram(module, environment=variables)
            stack.callback(program.kill)
            return program

        yield run


def test_sigterm_during_a_request_answers_it_and_exits_0(start):
    program = start()
    port = program.until("listening")["port"]
    program.until("model_loaded")
    url = f"http://127.0.0.1:{port}"
    with ThreadPoolExecutor(1) as pool, httpx.Client(trust_env=False) as client:
        answer = pool.submit(client.post, f"{url}/invocations", json={})
        program.until("predicting")
        program.process.send_signal(signal.SIGTERM)
        assert program.until("draining")["requests_in_flight"] == 1
        program.tell()
        response = answer.result(PATIENCE_SECONDS)
        assert (response.status_code, response.json()) == (200, "answered")
        assert program.until("stopped")["exit_code"] == 0
        assert program.end() == 0
        with pytest.raises(httpx.ConnectError):
            client.get(f"{url}/ping")


def test_sigterm_again_and_again_changes_nothing(start):
    program = start()
    program.until("model_loaded")
    # Up to the very end of the process, when the loop that handles signals is gone.
    while program.process.poll() is None:
        program.process.send_signal(signal.SIGTERM)
        time.sleep(0.001)
    assert program.process.returncode == 0


def test_sigterm_while_loading_exits_0_at_once(start):
    program = start(LOAD="endless")
    program.until("listening")
    program.process.send_signal(signal.SIGTERM)
    assert program.until("stopped")["exit_code"] == 0
    assert program.end() == 0
