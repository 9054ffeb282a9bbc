"""A full server refuses before it reads, and answers /ping beyond its most connections."""

import asyncio
import json

import pytest

from containers.serving import connections, server
from tests.containers.serving.harness import PING, connect, full_server, posted
from tests.support.servers import EchoPredictor, captured_logs, running_server

pytestmark = pytest.mark.anyio


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
