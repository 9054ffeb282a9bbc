"""Bad requests, bad clients and too many of them, against the program itself."""

import asyncio
import json
import os
import resource
import signal
import socket
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.containers.tensorrt.running_program import (
    NO_ANSWER,
    PATIENCE_SECONDS,
    Program,
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
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    directory = tmp_path_factory.mktemp("program")
    with running_program(
        directory, SLIPWAY_METRICS_PORT="0", SLIPWAY_MAX_NEW_TOKENS="100"
    ) as started:
        yield started
        assert started.stop() == 0


async def good_text(program: Program) -> str:
    answer = await ask(program.port, GOOD)
    assert (answer.status, answer.is_whole) == (200, True)
    [output] = answer.json()
    text: str = output["generated_text"]
    return text


def gauges(program: Program) -> dict[str, float]:
    """Samples without labels that the metrics port shows."""
    url = f"http://127.0.0.1:{program.metrics_port}/metrics"
    text = httpx.get(url, trust_env=False, timeout=PATIENCE_SECONDS).text
    return {
        sample.name: sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if not sample.labels
    }


async def until_idle(program: Program) -> None:
    """Waits until nothing is left of the requests so far."""
    names = ("requests_in_flight", "queue_length", "batch_rows_in_use", "buffered_bytes")
    async with asyncio.timeout(PATIENCE_SECONDS):
        while any(gauges(program)[f"slipway_{name}"] for name in names):
            await asyncio.sleep(0.02)


def padded(length: int) -> bytes:
    return GOOD + b" " * (length - len(GOOD))


BAD: dict[str, tuple[bytes, int, str]] = {
    "empty": (b"", 400, "The body is not valid JSON: Expecting value at line 1 column 1."),
    "not JSON": (
        b"inputs=x",
        400,
        "The body is not valid JSON: Expecting value at line 1 column 1.",
    ),
    "an array": (b"[]", 400, "The body must be a JSON object, not an array."),
    "inputs of another type": (
        b'{"inputs": 5}',
        400,
        "inputs must be a string or an array of strings, not a number.",
    ),
    "parameters of another type": (
        b'{"inputs": "a", "parameters": []}',
        400,
        "parameters must be an object, not an array.",
    ),
    "a text as a number": (
        request("a", max_new_tokens="5"),
        400,
        "max_new_tokens must be a whole number, not a string.",
    ),
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
    "not UTF-8": (
        b'{"inputs": "caf\xe9"}',
        400,
        "The body is not UTF-8: the byte at offset 15 is invalid.",
    ),
    "half of a pair": (
        b'{"inputs": "\\ud800"}',
        400,
        "inputs holds half of a surrogate pair at character 0.",
    ),
    "NaN": (
        b'{"inputs": "a", "parameters": {"do_sample": true, "temperature": NaN}}',
        400,
        "The body is not valid JSON: NaN is not a JSON value.",
    ),
    "infinite": (
        b'{"inputs": "a", "parameters": {"do_sample": true, "temperature": 1e999}}',
        400,
        "temperature=inf is not within 0.001 to 100.",
    ),
    "too many new tokens": (
        request("a", max_new_tokens=101),
        400,
        "max_new_tokens=101 is not within 1 to 100.",
    ),
    "an unknown parameter": (
        request("a", max_tokens=5),
        400,
        "Unknown parameter 'max_tokens' (did you mean max_new_tokens?); allowed: max_new_tokens, "
        "do_sample, temperature, top_k, top_p, seed, stop, num_return_sequences, num_beams, "
        "length_penalty, early_stopping, return_full_text.",
    ),
    "nested without end": (b"[" * LARGEST_BYTES, 400, "The body's JSON is nested too deeply."),
}


@pytest.mark.anyio
@pytest.mark.parametrize("name", BAD)
async def test_a_bad_request_is_told_why_and_costs_little(program: Program, name: str) -> None:
    content, status, message = BAD[name]
    assert await good_text(program) == GOOD_TEXT
    before = program.memory_bytes()
    answer = await ask(program.port, content)
    assert (answer.status, answer.json()["error"]["message"]) == (status, message)
    assert await good_text(program) == GOOD_TEXT
    # What Python makes of the JSON comes to a multiple of its size; nothing else does.
    assert program.memory_bytes() - before < 300 * MIB


@pytest.mark.anyio
async def test_the_largest_body_is_taken(program: Program) -> None:
    answer = await ask(program.port, padded(LARGEST_BYTES))
    assert answer.json() == [{"generated_text": GOOD_TEXT}]


@pytest.mark.anyio
async def test_clients_that_go_away_leave_nothing_behind(program: Program) -> None:
    def gone() -> int:
        return sum(
            line.get("error_code") == "client_disconnected" for line in program.events("request")
        )

    async def leave(content: bytes, *, sent_bytes: int, pieces: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", program.port)
        try:
            head = (
                f"POST /invocations HTTP/1.1\r\nHost: x\r\nContent-Length: {len(content)}\r\n\r\n"
            )
            writer.write(head.encode() + content[:sent_bytes])
            await writer.drain()
            for _ in range(pieces):
                await reader.readuntil(b"\n\n")
            if not pieces:
                await asyncio.sleep(0.01)
        finally:
            # A reset, as from a client that was killed.
            writer.get_extra_info("socket").setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0"
            )
            writer.transport.abort()

    before = gone()
    drawn = {"max_new_tokens": 100, "do_sample": True, "temperature": 5}
    # Without a seed, one stream of some 700 ends before its third piece.
    streams = [request("The", stream=True, seed=seed, **drawn) for seed in range(20)]
    whole = request("The", **drawn)
    await asyncio.gather(
        *(
            leave(stream, sent_bytes=len(stream), pieces=1 + index % 3)
            for index, stream in enumerate(streams)
        ),
        *(leave(whole, sent_bytes=len(whole), pieces=0) for _ in range(20)),
        *(leave(padded(100_000), sent_bytes=50_000, pieces=0) for _ in range(20)),
        *(good_text(program) for _ in range(10)),
    )
    await until_idle(program)
    # Some were answered before they left; nobody who left in the middle of a body was.
    assert 20 <= gone() - before <= 60
    assert await good_text(program) == GOOD_TEXT


@pytest.mark.size("all")
@pytest.mark.anyio
async def test_slow_clients_starve_nobody(tmp_path: Path) -> None:
    with running_program(
        tmp_path, SLIPWAY_REQUEST_TIMEOUT_SECONDS="10", SLIPWAY_METRICS_PORT="0"
    ) as program:
        port = program.port

        async def begin(sent: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(sent)
            return reader, writer

        head = b"POST /invocations HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n"
        silent = [await begin(b"") for _ in range(200)]
        unfinished = [await begin(head) for _ in range(200)]
        slow = [await begin(head + b"\r\n{") for _ in range(200)]

        async def trickle() -> None:
            while True:
                for _, writer in slow:
                    writer.write(b" ")
                for _, writer in unfinished:
                    writer.write(b"X-A: 1\r\n")
                await asyncio.sleep(0.2)

        trickling = asyncio.create_task(trickle())
        # None of these waits for the time-out of those.
        async with asyncio.timeout(PATIENCE_SECONDS):
            texts = await asyncio.gather(*(good_text(program) for _ in range(20)))
        assert texts == [GOOD_TEXT] * 20
        answers = [await reader.readuntil(b"}}") for reader, _ in slow]
        trickling.cancel()
        assert Counter(answer.split(b"\r\n")[0] for answer in answers) == {
            b"HTTP/1.1 408 Request Timeout": 200
        }
        assert b"The body did not arrive within 10 seconds." in answers[0]
        await until_idle(program)
        for _, writer in (*silent, *unfinished, *slow):
            writer.close()
        await asyncio.gather(
            *(writer.wait_closed() for _, writer in (*silent, *unfinished, *slow)),
            return_exceptions=True,
        )
        assert program.stop() == 0


@pytest.mark.size("all")
@pytest.mark.anyio
async def test_five_hundred_clients_are_answered_or_told_when_to_come_back(
    tmp_path: Path,
) -> None:
    with running_program(
        tmp_path, SLIPWAY_MAX_QUEUE_LENGTH="64", SLIPWAY_METRICS_PORT="0"
    ) as program:
        assert await good_text(program) == GOOD_TEXT
        before = program.memory_bytes()

        async def client(index: int) -> list[int]:
            statuses = []
            for _ in range(2):
                answer = await ask(
                    program.port, request("The", max_new_tokens=20, do_sample=True, seed=index)
                )
                assert answer.is_whole
                statuses.append(answer.status)
                if answer.status == 503:
                    assert 1 <= int(answer.headers["retry-after"]) <= 60
                    assert answer.json()["error"]["code"] == "overloaded"
            return statuses

        statuses = Counter(
            status
            for each in await asyncio.gather(*(client(index) for index in range(500)))
            for status in each
        )
        assert set(statuses) == {200, 503}
        assert statuses[200] >= 64
        await until_idle(program)
        assert program.memory_bytes() - before < 100 * MIB
        assert await good_text(program) == GOOD_TEXT
        assert program.stop() == 0


@pytest.mark.size("all")
@pytest.mark.anyio
@pytest.mark.parametrize("is_chunked", [False, True], ids=["with length", "chunked"])
async def test_many_large_bodies_at_once_fit_the_memory_that_is_for_them(
    tmp_path: Path, is_chunked: bool
) -> None:
    budget_bytes = 5 * LARGEST_BYTES
    with running_program(
        tmp_path, SLIPWAY_MAX_BUFFERED_BYTES=str(budget_bytes), SLIPWAY_METRICS_PORT="0"
    ) as program:
        assert await good_text(program) == GOOD_TEXT
        before = program.memory_bytes()
        content = padded(LARGEST_BYTES)
        headers = {"Content-Length": str(len(content))}
        if is_chunked:
            headers = {"Transfer-Encoding": "chunked"}
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())

        async def client() -> int:
            reader, writer = await asyncio.open_connection("127.0.0.1", program.port)
            writer.write(
                f"POST /invocations HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{head}\r\n".encode()
            )
            # All of them are in the middle of their bodies at a time.
            for begin in range(0, len(content), LARGEST_BYTES // 4):
                part = content[begin : begin + LARGEST_BYTES // 4]
                writer.write(b"%x\r\n%b\r\n" % (len(part), part) if is_chunked else part)
                await writer.drain()
                await asyncio.sleep(0.05)
            writer.write(b"0\r\n\r\n" if is_chunked else b"")
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
        assert (await ask(program.port, content)).status == 200
        assert program.stop() == 0


@pytest.mark.anyio
async def test_sigterm_under_load_loses_no_request_that_was_accepted(tmp_path: Path) -> None:
    with running_program(tmp_path) as program:
        port = program.port
        answered: set[str] = set()
        failed: list[str] = []
        is_stopping = False

        async def client(number: int) -> None:
            for index in range(10_000):
                name = f"client-{number}.{index}"
                is_stream = (number + index) % 2 == 0
                answer = await ask(
                    port,
                    request("The", stream=is_stream, do_sample=True, max_new_tokens=60),
                    **{"X-Amzn-RequestId": name},
                )
                if answer.status == 0:  # refused, or reset before it was accepted
                    assert is_stopping
                    failed.append(name)
                    return
                assert (answer.status, answer.is_whole) == (200, True)
                if is_stream:
                    last = json.loads(answer.body.split(b"data:")[-1])
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
        assert await ask(port, GOOD) == NO_ANSWER
        assert not program.events("drain_timed_out")


def test_it_takes_as_many_connections_as_the_system_lets_it(tmp_path: Path) -> None:
    def few_files() -> None:
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, most))

    with running_program(tmp_path, before=few_files) as program:
        soft, hard = resource.prlimit(program.process.pid, resource.RLIMIT_NOFILE)
        assert soft == hard > 256


@pytest.mark.anyio
async def test_the_metrics_count_tokens(program: Program) -> None:
    def tokens() -> tuple[float, float]:
        seen = gauges(program)
        return seen["slipway_prompt_tokens_total"], seen["slipway_generated_tokens_total"]

    prompt, generated = tokens()
    answer: list[dict[str, Any]] = (
        await ask(program.port, request(["The name", "The"], max_new_tokens=3))
    ).json()
    assert len(answer) == 2
    assert tokens() == (prompt + 3, generated + 6)
