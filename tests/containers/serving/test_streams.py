"""Answers that are sent piece by piece, over HTTP."""

import asyncio
import json
import socket
import threading

import pytest

from tests.containers.serving.harness import posted
from tests.support.servers import (
    PATIENCE_SECONDS,
    CountdownPredictor,
    EchoPredictor,
    captured_logs,
    running_server,
    until,
)

pytestmark = pytest.mark.anyio

LONG = {"inputs": [["long", 10_000]], "stream": True}


def body_of(events):
    """The data of server-sent events, each in one line, each with an empty line after it."""
    assert events.endswith("\n\n")
    blocks = events[:-2].split("\n\n")
    assert all(block.startswith("data:") and "\n" not in block for block in blocks)
    return [json.loads(block.removeprefix("data:")) for block in blocks]


async def test_a_stream_is_server_sent_events_and_one_line_in_the_log():
    with captured_logs() as logs:
        async with running_server(CountdownPredictor()) as running:
            response = await running.stream(["a", 3], headers={"X-Amzn-RequestId": "abc-1"})
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/event-stream")
    assert response.headers["x-amzn-requestid"] == "abc-1"
    assert body_of(response.text) == ["a3", "a2", "a1"]
    [line] = logs.events("request")
    assert (line["request_id"], line["status"], line["batch_size"]) == ("abc-1", 200, 1)
    assert line["milliseconds"] >= line["compute_milliseconds"]


async def test_a_long_parse_keeps_nobody_else_waiting():
    entered, leave = threading.Event(), threading.Event()

    class Slow(CountdownPredictor):
        def parses_long(self, body):
            return b"slow" in body

        def parse(self, body):
            if b"slow" in body:
                entered.set()
                assert leave.wait(PATIENCE_SECONDS)
            return super().parse(body)

    async with running_server(Slow()) as running:
        slow = asyncio.create_task(running.post(["slow", 1]))
        assert await asyncio.to_thread(entered.wait, PATIENCE_SECONDS)
        assert (await running.client.get("/ping")).status_code == 200
        large = await running.post(["x" * 40_000, 1])
        assert large.status_code == 200
        leave.set()
        assert (await slow).json() == ["slow"]


async def test_each_piece_is_there_before_the_next_is_computed_and_a_drain_lets_streams_end():
    predictor = CountdownPredictor(gated=True)
    predictor.release()  # headers are sent with the first piece
    async with (
        running_server(predictor) as running,
        running.client.stream("POST", "/invocations", json=LONG | {"inputs": [["a", 3]]}) as answer,
    ):
        pieces = answer.aiter_text()
        assert await anext(pieces) == 'data:"a3"\n\n'
        assert not predictor._permits.acquire(blocking=False)
        predictor.release()
        assert await anext(pieces) == 'data:"a2"\n\n'
        running.server.stop()
        predictor.release()
        assert [piece async for piece in pieces] == ['data:"a1"\n\n']


async def test_a_client_that_goes_away_mid_stream_costs_no_further_step():
    predictor = CountdownPredictor(gated=True)
    with captured_logs() as logs:
        async with running_server(predictor) as running:
            predictor.release()
            async with running.client.stream("POST", "/invocations", json=LONG) as answer:
                await anext(answer.aiter_text())
            await until(lambda: running.server.service.requests_in_flight == 0)
            predictor.release(10)
            await until(lambda: predictor.left == ["long"])
            assert len(predictor.steps) < 5
            assert (await running.post(["next", 1])).json() == ["next"]
    [gone, _] = logs.events("request")
    assert gone["error_code"] == "client_disconnected"


async def test_a_client_that_goes_away_before_the_first_piece_leaves_too():
    predictor = CountdownPredictor(gated=True)
    with captured_logs() as logs:
        async with running_server(predictor) as running:
            asking = asyncio.create_task(running.client.post("/invocations", json=LONG))
            await until(lambda: predictor.steps == [["long"]])
            asking.cancel()
            await until(lambda: running.server.service.requests_in_flight == 0)
            predictor.release(10)
            await until(lambda: predictor.left == ["long"])
    [gone] = logs.events("request")
    assert (gone["status"], gone["error_code"]) == (499, "client_disconnected")


async def test_a_client_that_goes_away_before_the_headers_could_be_sent_leaves_too():
    predictor = CountdownPredictor(gated=True)
    with captured_logs() as logs:
        async with running_server(predictor) as running:
            received = iter([{"type": "http.request", "body": json.dumps(LONG).encode()}])

            async def receive():
                # Read again once the first piece is computed.
                return next(received, {"type": "http.disconnect"})

            async def send(message):
                await asyncio.Event().wait()  # as where the client has left earlier answers unread

            scope = {"type": "http", "method": "POST", "path": "/invocations"}
            scope |= {"headers": [], "query_string": b""}
            predictor.release()
            await running.server._uvicorn.config.app(scope, receive, send)
            assert running.server.service.requests_in_flight == 0
            predictor.release(10)
            await until(lambda: predictor.left == ["long"])
    [gone] = logs.events("request")
    assert gone["error_code"] == "client_disconnected"


async def test_an_error_after_it_is_the_last_event():
    predictor = CountdownPredictor(gated=True)
    with captured_logs() as logs:
        async with running_server(predictor, request_timeout_seconds=1) as running:
            predictor.release()
            response = await running.client.post("/invocations", json=LONG)
    assert response.status_code == 200
    message = "The answer was not ready within the time limit."
    error = {"error": {"code": "timeout", "message": message}}
    assert body_of(response.text) == ["long10000", error]
    [line] = logs.events("request")
    assert (line["level"], line["error_code"]) == ("ERROR", "timeout")


async def test_a_client_that_does_not_read_holds_nobody_up():
    predictor = CountdownPredictor()
    async with running_server(predictor, request_timeout_seconds=2) as running:
        content = json.dumps({"inputs": [["long", 1_000_000]], "stream": True}).encode()
        with socket.create_connection(("127.0.0.1", running.server.port)) as silent:
            silent.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            silent.sendall(posted(content))
            await until(lambda: len(predictor.steps) > 10)
            for _ in range(20):
                assert (await running.post(["quick", 3])).json() == ["quick"]
        await until(lambda: running.server.service.requests_in_flight == 0)


async def test_whole_answers_and_streams_share_a_batch():
    predictor = CountdownPredictor(gated=True)
    async with running_server(predictor) as running:
        streamed = asyncio.create_task(running.stream(["s", 4]))
        await until(lambda: predictor.steps == [["s"]])
        whole = asyncio.create_task(running.post(["w", 2]))
        await until(lambda: running.server.service.queue_length == 1)
        predictor.release(10)
        assert (await whole).json() == ["w"]
        assert len(body_of((await streamed).text)) == 4
    assert ["s", "w"] in predictor.steps


async def test_a_model_without_steps_answers_whole():
    async with running_server(EchoPredictor()) as running:
        response = await running.stream(1)
    assert response.headers["content-type"] == "application/json"
