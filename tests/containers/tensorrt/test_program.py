"""The container's program as SageMaker runs it: a process, environment variables, HTTP, SIGTERM."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.starts import count_start

ROOT = Path(__file__).parents[3]
PATIENCE_SECONDS = 60
COMMAND = (sys.executable, "-m", "containers.tensorrt", "serve")


def environment(**variables: str) -> dict[str, str]:
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith("SLIPWAY")
    }
    return inherited | {
        "SAGEMAKER_BIND_TO_PORT": "0",
        "SM_MODEL_DIR": "samples/gpt2-autocomplete/model",
        **variables,
    }


def events(log: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.splitlines()]


@pytest.fixture
def program() -> Iterator[subprocess.Popen[str]]:
    count_start("server")
    process = subprocess.Popen(
        COMMAND, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, text=True
    )
    yield process
    process.kill()
    process.communicate()


def port_of(process: subprocess.Popen[str]) -> int:
    """Waits until the model is loaded; returns the port that the server took."""
    assert process.stdout is not None
    port = 0
    for line in process.stdout:
        fields = json.loads(line)
        if fields["event"] == "listening":
            port = fields["port"]
        if fields["event"] == "model_loaded":
            return port
    raise AssertionError("the process ended before it was ready")


def test_concurrent_clients_get_what_one_alone_gets(program: subprocess.Popen[str]) -> None:
    assert program.stdout is not None
    seen: list[dict[str, Any]] = []
    while not seen or seen[-1]["event"] != "model_loaded":
        seen.append(json.loads(program.stdout.readline()))
    [port] = [line["port"] for line in seen if line["event"] == "listening"]
    [backend] = [line for line in seen if line["event"] == "backend_selected"]
    assert backend["backend"] == "onnxruntime-cpu"
    assert backend["reason"] == "the model directory holds model.onnx and no TensorRT engine"

    with httpx.Client(
        base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE_SECONDS, trust_env=False
    ) as client:
        assert client.get("/ping").status_code == 200

        def complete(request: tuple[str, int]) -> str:
            text, new_tokens = request
            response = client.post(
                "/invocations",
                json={"inputs": text, "parameters": {"max_new_tokens": new_tokens}},
            )
            assert response.status_code == 200
            [output] = response.json()
            generated: str = output["generated_text"]
            return generated

        requests = [("Amazon S3 bucket", 12), ("The", 3), ("Specifies the name of", 20)] * 4
        alone = [complete(request) for request in requests]
        with ThreadPoolExecutor(len(requests)) as pool:
            assert list(pool.map(complete, requests)) == alone
        assert alone[0] == " name for the Amazon S3 bucket."

    program.send_signal(signal.SIGTERM)
    # `communicate` would not return what `readline` has read ahead.
    log = events(program.stdout.read())
    assert program.wait(timeout=PATIENCE_SECONDS) == 0
    assert log[-1]["event"] == "stopped"
    assert max(line.get("batch_size", 0) for line in log) > 1


def test_every_way_to_generate_shares_batches_and_a_bad_request_fails_alone(
    program: subprocess.Popen[str],
) -> None:
    port = port_of(program)
    sampled = {"do_sample": True, "temperature": 1.5, "seed": 3}
    requests: list[dict[str, Any]] = [
        {"max_new_tokens": 20},
        sampled | {"num_return_sequences": 3},
        {"num_beams": 4, "num_return_sequences": 2},
        sampled | {"stop": [" the"], "max_new_tokens": 30},
        {"num_beams": 9},
    ]
    with httpx.Client(
        base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE_SECONDS, trust_env=False
    ) as client:

        def complete(parameters: dict[str, Any]) -> tuple[int, Any]:
            response = client.post(
                "/invocations",
                json={"inputs": "Specifies the name of", "parameters": parameters},
            )
            return response.status_code, response.json()

        alone = [complete(parameters) for parameters in requests]
        with ThreadPoolExecutor(len(requests) * 4) as pool:
            assert list(pool.map(complete, requests * 4)) == alone * 4

    assert [status for status, _ in alone] == [200, 200, 200, 200, 400]
    assert [len(answers) for _, answers in alone[:4]] == [1, 3, 2, 1]
    assert alone[4][1] == {
        "error": {
            "code": "invalid_request",
            "message": "num_beams=9 is not within 1 to 8, the endpoint's max_batch_size.",
        }
    }


def test_the_batch_size_bounds_the_sequences_of_a_request() -> None:
    process = subprocess.Popen(
        COMMAND,
        cwd=ROOT,
        env=environment(SLIPWAY_MAX_BATCH_SIZE="3"),
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        url = f"http://127.0.0.1:{port_of(process)}/invocations"
        with httpx.Client(timeout=PATIENCE_SECONDS, trust_env=False) as client:
            body = {"inputs": "The name", "parameters": {"num_beams": 3}}
            assert client.post(url, json=body).status_code == 200
            body["parameters"] = {"num_beams": 4}
            refused = client.post(url, json=body)
            assert refused.status_code == 400
            assert refused.json()["error"]["message"] == (
                "num_beams=4 is not within 1 to 3, the endpoint's max_batch_size."
            )
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(
    ("variables", "event", "field", "value"),
    [
        (
            {"SLIPWAY_MAX_NEW_TOKEN": "5", "SLIPWAY_MAX_BATCH_SIZE": "0"},
            "settings_invalid",
            "problems",
            [
                "SLIPWAY_MAX_BATCH_SIZE='0' is not a whole number from 1 to 1024",
                "SLIPWAY_MAX_NEW_TOKEN is not a variable of this container "
                "(did you mean SLIPWAY_MAX_NEW_TOKENS?)",
            ],
        ),
        (
            {"SM_MODEL_DIR": "/no/such/model"},
            "model_load_failed",
            "message",
            "/no/such/model is not a directory: no model data was mounted",
        ),
    ],
    ids=["settings", "model directory"],
)
def test_a_start_that_cannot_work_is_one_line_and_exit_code_1(
    variables: dict[str, str], event: str, field: str, value: object
) -> None:
    done = subprocess.run(
        COMMAND,
        cwd=ROOT,
        env=environment(**variables),
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert (done.returncode, done.stderr) == (1, "")
    [line] = [line for line in events(done.stdout) if line["level"] == "ERROR"]
    assert (line["event"], line[field]) == (event, value)
