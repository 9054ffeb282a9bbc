"""The container's program as SageMaker runs it: a process, environment variables, HTTP, SIGTERM."""

import asyncio
import json
import os
import resource
import signal
import subprocess
import sys
from collections import Counter

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from containers.encoders.settings import EncoderSettings
from containers.serving.errors import InvalidRequestError
from containers.serving.metrics import Metrics
from containers.serving.settings import ServingSettings
from containers.tensorrt.__main__ import _serve
from containers.tensorrt.openapi import openapi_document
from containers.tensorrt.parameters import RequestLimits
from containers.tensorrt.settings import GenerationSettings, TensorRTSettings
from slipway.embedded_aws.hosting.families import programs
from tests.containers.tensorrt.running_program import (
    PATIENCE_SECONDS,
    ROOT,
    ask,
    request,
    running_program,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")

MIB = 1024**2
LARGEST_BYTES = 6_291_456
GOOD = request("Amazon S3 bucket", max_new_tokens=12)
GOOD_TEXT = " name for the Amazon S3 bucket."


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """The program as the embedded AWS runs it, but for a limit and the metrics."""
    variables = programs()["slipway/tensorrt"].environment
    directory = tmp_path_factory.mktemp("program")
    with running_program(
        directory, **variables, SLIPWAY_METRICS_PORT="0", SLIPWAY_MAX_NEW_TOKENS="100"
    ) as started:
        yield started
        assert started.stop() == 0


async def good_text(program):
    answer = await ask(program.port, GOOD)
    assert answer.status_code == 200
    [output] = answer.json()
    return output["generated_text"]


def gauges(program):
    url = f"http://127.0.0.1:{program.metrics_port}/metrics"
    text = httpx.get(url, trust_env=False, timeout=PATIENCE_SECONDS).text
    return {
        sample.name: sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if not sample.labels
    }


async def until_idle(program):
    """Waits until nothing is left of the requests so far."""
    names = ("requests_in_flight", "queue_length", "batch_rows_in_use", "buffered_bytes")
    async with asyncio.timeout(PATIENCE_SECONDS):
        while any(gauges(program)[f"slipway_{name}"] for name in names):
            await asyncio.sleep(0.02)


def padded(length):
    return GOOD + b" " * (length - len(GOOD))


@pytest.mark.anyio
async def test_every_way_to_generate_shares_batches_and_a_bad_request_fails_alone(program):
    [backend] = program.events("backend_selected")
    assert backend["backend"] == "onnxruntime-cpu"
    sampled = {"do_sample": True, "temperature": 1.5, "seed": 3}
    text = "Specifies the name of"
    requests = [
        GOOD,
        request("The", max_new_tokens=3),
        request(text, **sampled, num_return_sequences=3),
        request(text, num_beams=4, num_return_sequences=2),
        request(text, **sampled, stop=[" the"], max_new_tokens=30),
        request(text, num_beams=9),
    ]

    async def complete(body):
        answer = await ask(program.port, body)
        return answer.status_code, answer.json()

    alone = [await complete(body) for body in requests]
    assert await asyncio.gather(*(complete(body) for body in requests * 4)) == alone * 4

    assert [status for status, _ in alone] == [200] * 5 + [400]
    assert [len(answers) for _, answers in alone[:5]] == [1, 1, 3, 2, 1]
    assert alone[0][1] == [{"generated_text": GOOD_TEXT}]
    assert alone[5][1]["error"] == {
        "code": "invalid_request",
        "message": "num_beams=9 is not within 1 to 8, the endpoint's max_batch_size.",
    }
    assert max(line.get("batch_size", 0) for line in program.events("request")) > 1


def test_the_embedded_aws_shows_the_docs_of_this_endpoint(program):
    with httpx.Client(
        base_url=f"http://127.0.0.1:{program.port}", trust_env=False, timeout=PATIENCE_SECONDS
    ) as client:
        assert "SwaggerUIBundle" in client.get("/docs").text
        limits = RequestLimits(
            GenerationSettings(max_new_tokens=100),
            ServingSettings.max_batch_size,
            ServingSettings.max_queue_length,
        )
        assert client.get("/openapi.json").json() == json.loads(
            json.dumps(openapi_document(limits))
        )


def test_the_variables_bound_the_sequences_of_a_request():
    settings = TensorRTSettings(GenerationSettings(), EncoderSettings())
    served = _serve(settings, ServingSettings(max_batch_size=3), Metrics())
    served.predictor.load(ROOT / "samples/gpt2-autocomplete/model")
    assert served.predictor.parse(request("The name", num_beams=3))
    with pytest.raises(InvalidRequestError, match=r"^num_beams=4 is not within 1 to 3, the endpo"):
        served.predictor.parse(request("The name", num_beams=4))


# Each would take much time or memory if it were taken as far as its answer.
COSTLY = {
    "10,000 prompts": (
        request(["hello"] * 10_000),
        400,
        "inputs holds 10000 texts: it must hold 1 to 256, the endpoint's max_queue_length.",
    ),
    "6 MB and a byte": (
        padded(LARGEST_BYTES + 1),
        413,
        f"The body exceeds the limit of {LARGEST_BYTES} bytes.",
    ),
    "6 MB of prompt": (
        request("a" * (LARGEST_BYTES - 100)),
        400,
        "Input 0 has at least 393210 tokens; the limit is 127.",
    ),
    "256 long prompts": (
        request(["word " * 4000] * 256),
        400,
        "Input 0 has at least 1250 tokens; the limit is 127.",
    ),
    "two million objects": (
        b'{"inputs": [' + b"{}," * 2_000_000 + b"{}]}",
        400,
        "inputs holds 2000001 texts: it must hold 1 to 256, the endpoint's max_queue_length.",
    ),
    "nested without end": (b"[" * LARGEST_BYTES, 400, "The body's JSON is nested too deeply."),
}


@pytest.mark.anyio
@pytest.mark.parametrize("name", COSTLY)
async def test_a_bad_request_is_told_why_and_costs_little(program, name):
    content, status, message = COSTLY[name]
    assert await good_text(program) == GOOD_TEXT
    before = program.memory_bytes()
    answer = await ask(program.port, content)
    assert (answer.status_code, answer.json()["error"]["message"]) == (status, message)
    assert await good_text(program) == GOOD_TEXT
    # What Python makes of the JSON comes to a multiple of its size; nothing else does.
    assert program.memory_bytes() - before < 300 * MIB


@pytest.mark.size("all")
@pytest.mark.anyio
async def test_many_large_bodies_at_once_fit_the_memory_that_is_for_them(tmp_path):
    budget_bytes = 5 * LARGEST_BYTES
    with running_program(
        tmp_path, SLIPWAY_MAX_BUFFERED_BYTES=str(budget_bytes), SLIPWAY_METRICS_PORT="0"
    ) as program:
        assert await good_text(program) == GOOD_TEXT
        before = program.memory_bytes()
        content = padded(LARGEST_BYTES)
        head = (
            "POST /invocations HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
            f"Content-Length: {len(content)}\r\n\r\n"
        )

        async def client():
            reader, writer = await asyncio.open_connection("127.0.0.1", program.port)
            writer.write(head.encode())
            # All of them are in the middle of their bodies at a time.
            for begin in range(0, len(content), LARGEST_BYTES // 4):
                writer.write(content[begin : begin + LARGEST_BYTES // 4])
                await writer.drain()
                await asyncio.sleep(0.05)
            answer = await reader.read()
            writer.close()
            return int(answer.split()[1])

        # 630 MB, were they held.
        statuses = Counter(await asyncio.gather(*(client() for _ in range(100))))
        assert set(statuses) == {200, 503}
        assert statuses[503] >= 50
        # The budget, a copy of the body that is parsed, and what lies in the connections' buffers.
        assert program.memory_bytes() - before < budget_bytes + 120 * MIB
        await until_idle(program)
        assert (await ask(program.port, content)).status_code == 200
        assert program.stop() == 0


@pytest.mark.anyio
async def test_sigterm_under_load_loses_no_request_that_was_accepted(tmp_path):
    def few_files():
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, most))

    with running_program(tmp_path, before=few_files) as program:
        # It takes as many connections as the system lets it.
        soft, hard = resource.prlimit(program.process.pid, resource.RLIMIT_NOFILE)
        assert soft == hard > 256
        port = program.port
        answered = set()
        failed = []
        is_stopping = False

        async def client(number):
            for index in range(10_000):
                name = f"client-{number}.{index}"
                is_stream = (number + index) % 2 == 0
                answer = await ask(
                    port,
                    request("The", stream=is_stream, do_sample=True, max_new_tokens=60),
                    **{"X-Amzn-RequestId": name},
                )
                if answer is None:  # refused, or reset before it was accepted
                    assert is_stopping
                    failed.append(name)
                    return
                assert answer.status_code == 200
                if is_stream:
                    last = json.loads(answer.text.split("data:")[-1])
                    # A draw may end at its first token.
                    assert last["details"]["finish_reason"] in ("length", "eos_token")
                answered.add(name)

        clients = [asyncio.create_task(client(number)) for number in range(40)]
        async with asyncio.timeout(PATIENCE_SECONDS):
            while len(answered) < 60:
                await asyncio.sleep(0.01)
            is_stopping = True
            os.kill(program.process.pid, signal.SIGTERM)
            await asyncio.gather(*clients)
        assert await asyncio.to_thread(program.process.wait, PATIENCE_SECONDS) == 0
        draining = program.until_event("draining")
        assert draining["requests_in_flight"] > 0
        # Every request that the program took was answered, to its end; no other was.
        assert {line["request_id"] for line in program.events("request")} == answered
        assert len(failed) == 40
        assert await ask(port, GOOD) is None
        assert not program.events("drain_timed_out")


@pytest.mark.anyio
async def test_the_metrics_count_tokens(program):
    def tokens():
        seen = gauges(program)
        return seen["slipway_prompt_tokens_total"], seen["slipway_generated_tokens_total"]

    prompt, generated = tokens()
    answer = (await ask(program.port, request(["The name", "The"], max_new_tokens=3))).json()
    assert len(answer) == 2
    assert tokens() == (prompt + 3, generated + 6)


def test_a_start_that_cannot_work_is_one_line_and_exit_code_1():
    done = subprocess.run(
        [sys.executable, "-m", "containers.tensorrt", "serve"],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "SLIPWAY_MAX_NEW_TOKEN": "5"},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert (done.returncode, done.stderr) == (1, "")
    line = json.loads(done.stdout)
    assert (line["event"], line["level"]) == ("settings_invalid", "ERROR")
    assert line["problems"] == [
        "SLIPWAY_MAX_NEW_TOKEN is not a variable of this container (did you mean "
        "SLIPWAY_MAX_NEW_TOKENS?)"
    ]
