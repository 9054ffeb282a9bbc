"""A request is refused where the process would otherwise be killed, and by a full server."""

import asyncio
import contextlib
import json
import sys

import pytest

from containers.serving import connections, server
from containers.serving.errors import MemoryShortError
from containers.serving.memory import (
    MemoryGuard,
    ProcessMemory,
    default_buffer_bytes,
    memory_limit_bytes,
)
from tests.containers.serving.harness import CHUNKED, PING, connect, full_server, posted
from tests.support.servers import EchoPredictor, captured_logs, running_server, until

pytestmark = pytest.mark.anyio

BUFFERS_FULL = "The bodies of other requests take the memory that there is for them; retry later."
MIB = 1024**2


@pytest.mark.parametrize(
    ("text", "expected"), [("1048576\n", 1048576), ("max\n", None), ("9223372036854771712\n", None)]
)
def test_the_limit_is_the_containers_or_the_machines(tmp_path, text, expected):
    machine = memory_limit_bytes([])
    assert machine > 256 * MIB
    (tmp_path / "memory.max").write_text(text)
    files = [tmp_path / "not there", tmp_path / "memory.max"]
    assert memory_limit_bytes(files) == (expected or machine)


def test_bodies_take_an_eighth_of_it_but_one_always_fits():
    assert default_buffer_bytes(1024 * MIB, 6 * MIB) == 128 * MIB
    assert default_buffer_bytes(64_000 * MIB, 6 * MIB) == 512 * MIB
    assert default_buffer_bytes(1024 * MIB, 1000 * MIB) == 1000 * MIB


@pytest.mark.skipif(sys.platform != "linux", reason="it is read from /proc")
def test_what_the_process_takes_is_read():
    memory = ProcessMemory()
    try:
        before = memory.read_bytes()
        held = bytearray(b"x" * (64 * MIB))
        grown = memory.read_bytes() - before
        assert 60 * MIB < grown < 80 * MIB
        assert len(held) == 64 * MIB
    finally:
        memory.close()
    assert memory.read_bytes() == 0


def guard_of(most_bytes, taken_bytes=0):
    return MemoryGuard(
        max_buffered_bytes=most_bytes, limit_bytes=1000, read_process_bytes=lambda: taken_bytes
    )


def test_bodies_share_a_budget_and_give_it_back():
    guard = guard_of(100)
    with guard.body(others_in_flight=0) as first:
        first.grow_to(60)
        first.grow_to(50)  # less than it has already
        with guard.body(others_in_flight=1) as second:
            second.grow_to(40)
            assert guard.buffered_bytes == 100
            with pytest.raises(MemoryShortError, match=BUFFERS_FULL):
                second.grow_to(41)
        assert guard.buffered_bytes == 60
    assert guard.buffered_bytes == 0


def test_while_the_process_is_large_requests_come_in_one_at_a_time():
    for taken_bytes, is_short in ((950, False), (951, True)):
        guard = guard_of(100, taken_bytes)
        with guard.body(others_in_flight=0) as alone:
            alone.grow_to(10)
        with guard.body(others_in_flight=1) as beside:
            expected = (
                pytest.raises(MemoryShortError, match="The server is short of memory")
                if is_short
                else contextlib.nullcontext()
            )
            with expected:
                beside.grow_to(10)


def buffered_bytes(running):
    return running.server.service.memory_guard.buffered_bytes


def assert_refused(response, message):
    assert response.status_code == 503
    assert response.headers["retry-after"] == "1"
    assert response.json() == {"error": {"code": "overloaded", "message": message}}


async def test_a_body_that_is_still_on_its_way_counts():
    async with running_server(
        EchoPredictor(), max_request_bytes=1000, max_buffered_bytes=2000
    ) as running:
        slow = [await connect(running) for _ in range(2)]
        for _, writer in slow:
            writer.write(posted(b"", length=900))
        await until(lambda: buffered_bytes(running) == 1800)
        assert_refused(await running.post("x" * 300), BUFFERS_FULL)
        # Small ones are served beside them.
        assert (await running.post("small")).json() == ["small"]
        for _, writer in slow:
            writer.close()
            await writer.wait_closed()
        await until(lambda: buffered_bytes(running) == 0)
        assert (await running.post("x" * 300)).status_code == 200


async def test_a_body_without_a_length_counts_as_it_comes():
    async with running_server(
        EchoPredictor(), max_request_bytes=1000, max_buffered_bytes=1000
    ) as running:
        _, writer = await connect(running)
        writer.write(CHUNKED + b"190\r\n" + b"x" * 0x190 + b"\r\n")
        await until(lambda: buffered_bytes(running) == 0x190)
        assert (await running.post("x" * 700)).status_code == 503
        writer.write(b"1\r\ny\r\n0\r\n\r\n")
        await until(lambda: buffered_bytes(running) == 0)
        writer.close()
        await writer.wait_closed()


async def test_nothing_is_held_once_a_body_is_parsed():
    predictor = EchoPredictor(gated=True)
    async with running_server(predictor) as running:
        waiting = asyncio.create_task(running.post("x" * 100_000))
        await until(lambda: len(predictor.batches) == 1)
        assert buffered_bytes(running) == 0
        predictor.release()
        assert (await waiting).status_code == 200


async def test_a_process_that_is_nearly_too_large_answers_one_request_at_a_time():
    predictor = EchoPredictor(gated=True)
    async with running_server(predictor) as running:
        guard = running.server.service.memory_guard
        guard.read_process_bytes = lambda: 2**62
        first = asyncio.create_task(running.post("first"))
        await until(lambda: predictor.batches == [["first"]])
        message = "The server is short of memory; retry later."
        assert_refused(await running.post("second"), message)
        predictor.release(2)
        assert (await first).json() == ["first"]
        assert (await running.post("third")).json() == ["third"]


async def test_who_waits_to_be_asked_for_a_refused_body_is_not_asked():
    async with running_server(EchoPredictor(), max_request_bytes=1000) as running:
        reader, writer = await connect(running)
        writer.write(posted(b"", b"Expect: 100-continue\r\n", length=1001))
        answer = await reader.read()
        writer.close()
        await writer.wait_closed()
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"connection: close" in answer.lower()


# A full server refuses before it reads, and answers /ping beyond its most connections.


async def test_a_full_queue_refuses_before_it_parses():
    with captured_logs() as logs:
        async with full_server() as (running, predictor, waiting):
            for _ in range(3):
                refused = await running.client.post("/invocations", content=b"this is not JSON")
                assert refused.status_code == 503
                assert refused.headers["retry-after"] == "1"
                assert refused.json()["error"]["code"] == "overloaded"
            predictor.release(2)
            assert [(await each).status_code for each in waiting] == [200, 200]
    # Not a line for each.
    assert len(logs.events("request")) == 2
    assert sum(line["requests"] for line in logs.events("requests_refused")) == 3


async def test_beyond_the_most_connections_only_ping_is_answered(monkeypatch):
    monkeypatch.setattr(server, "_SPARE_CONNECTIONS", 1)
    monkeypatch.setattr(server, "_CONNECTIONS_PER_PLACE", 0)
    monkeypatch.setattr(connections, "_REFUSAL_SECONDS", 0.1)
    monkeypatch.setattr(connections, "_SPARE_SECONDS", 1.0)

    async def ask(*parts):
        reader, writer = await connect(running)
        for part in parts:
            writer.write(part)
            await writer.drain()
        said = await reader.read()
        writer.close()
        return said

    # The client that waits until the server is ready keeps the one connection.
    async with running_server(EchoPredictor()) as running:
        assert (await ask(PING)).startswith(b"HTTP/1.1 200 ")
        assert (await ask(PING[:3], PING[3:])).startswith(b"HTTP/1.1 200 ")
        head, _, body = (await ask(b"POST /invocations HTTP/1.1\r\n")).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 503 ")
        assert b"retry-after: 1\r\n" in head
        assert json.loads(body)["error"]["code"] == "overloaded"
        # One that says nothing is closed, and those that are served stay.
        assert await ask() == b""
        assert (await running.post("kept")).json() == ["kept"]


async def test_a_flooded_server_serves_no_new_connection_until_there_is_room():
    async with full_server() as (running, predictor, waiting):
        service = running.server.service
        for _ in range(1000):  # as many refusals take five seconds
            service.refusals.book(asyncio.get_running_loop().time())
        assert service.is_flooded()
        refused = await running.post(3)
        assert (refused.status_code, refused.headers["connection"]) == (503, "close")
        assert "as many requests as it can answer in time" in refused.text
        reader, writer = await connect(running)
        # The server says nothing of a new connection; one that follows it has an answer.
        assert (await running.client.get("/ping")).status_code == 200
        predictor.release(3)
        # An answer of a flooded server ends its connection, which is idle afterwards.
        assert {(await each).status_code for each in waiting} == {200}
        writer.write(posted(b'{"inputs": ["third"]}'))
        assert (await reader.readline()).startswith(b"HTTP/1.1 200 ")
        writer.close()
        await writer.wait_closed()
