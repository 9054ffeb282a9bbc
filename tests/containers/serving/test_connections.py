"""Clients that are slow, silent or do not speak HTTP: each wait for them ends."""

import asyncio
import contextlib
import json
import socket
import sys
import threading
import time

import pytest

from containers.serving import connections
from containers.serving.memory import ProcessMemory
from tests.containers.serving.harness import CHUNKED, PING, answer, connect, posted
from tests.support.servers import (
    PATIENCE_SECONDS,
    CountdownPredictor,
    EchoPredictor,
    captured_logs,
    running_server,
    until,
)

pytestmark = pytest.mark.anyio

# More bytes than one packet has, and than headers may have.
MANY_PINGS = 10_000
CHUNKS = b'f\r\n{"inputs": [1]}\r\n0\r\n'
CSV = b"Content-Type: text/csv\r\n"
# asyncio takes fractions, other than uvicorn's type says.
KEEP_ALIVE_SECONDS = 0.3


@contextlib.asynccontextmanager
async def connected(predictor, **settings):
    async with running_server(predictor, **settings) as running:
        reader, writer = await connect(running)
        yield running, reader, writer
        writer.close()


async def rest_of(streams):
    """What the server still sends until it closes the connection; it may well reset it."""
    reader, writer = streams
    said = b""
    with contextlib.suppress(ConnectionResetError):
        async with asyncio.timeout(5):
            while piece := await reader.read(65_536):
                said += piece
    writer.close()
    return said


async def drip(streams, data):
    """Sends data now and then, until the server closes the connection.

    Returns what it said, and the seconds until then.
    """
    begun_at = time.monotonic()
    closed = asyncio.create_task(rest_of(streams))
    while not closed.done():
        streams[1].write(data)
        await asyncio.sleep(0.02)
    return await closed, time.monotonic() - begun_at


def open_connections(running):
    return len(running.server._uvicorn.server_state.connections)


async def test_headers_that_never_end_are_cut_off(monkeypatch):
    monkeypatch.setattr(connections, "HEADERS_TIMEOUT_SECONDS", 0.3)
    with captured_logs() as logs:
        async with connected(EchoPredictor()) as (running, *streams):
            streams[1].write(b"POST /invocations HTTP/1.1\r\n")
            # A byte now and then does not buy more time.
            said, seconds = await drip(streams, b"X-Slow: 1\r\n")
            assert said == b""
            assert 0.3 <= seconds < 3
            assert (await running.post("next")).json() == ["next"]
    assert logs.events("headers_timed_out")


async def test_a_connection_that_says_nothing_but_line_ends_is_closed():
    async with running_server(EchoPredictor()) as running:
        running.server._uvicorn.config.timeout_keep_alive = KEEP_ALIVE_SECONDS
        silent = [await connect(running) for _ in range(20)]
        kept = await connect(running)
        dripping = asyncio.create_task(drip(await connect(running), b"\r\n"))
        # Idle after an answer is the same.
        kept[1].write(PING)
        assert (await running.post("beside them")).status_code == 200
        assert [await rest_of(streams) for streams in silent] == [b""] * 20
        assert (await rest_of(kept)).startswith(b"HTTP/1.1 200 ")
        said, seconds = await dripping
        assert said == b""
        assert KEEP_ALIVE_SECONDS <= seconds < 4


async def test_a_request_begun_during_an_answer_is_not_idle():
    predictor = EchoPredictor(gated=True)
    async with running_server(predictor) as running:
        running.server._uvicorn.config.timeout_keep_alive = KEEP_ALIVE_SECONDS
        reader, writer = await connect(running)
        writer.write(posted() + posted()[:10])
        await until(lambda: len(predictor.batches) == 1)
        predictor.release()
        assert (await answer(reader))[1] == b"[1]"
        writer.write(posted()[10:])
        await until(lambda: len(predictor.batches) == 2)
        await asyncio.sleep(1.5 * KEEP_ALIVE_SECONDS)
        predictor.release()
        assert (await answer(reader))[1] == b"[1]"
        writer.close()


async def test_headers_in_two_packets_are_a_request(monkeypatch):
    monkeypatch.setattr(connections, "HEADERS_TIMEOUT_SECONDS", 0.2)
    async with connected(EchoPredictor()) as (_, *streams):
        for _ in range(2):
            streams[1].write(b"GET /ping HT")
            await asyncio.sleep(0.05)
            streams[1].write(b"TP/1.1\r\nHost: x\r\n\r\n")
            assert (await streams[0].readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
            # Longer than headers may take: the timer of the first is not running any more.
            await asyncio.sleep(0.3)


async def test_a_body_that_is_too_slow_is_408(monkeypatch):
    monkeypatch.setattr(connections, "HEADERS_TIMEOUT_SECONDS", 0.5)
    with captured_logs() as logs:
        async with connected(EchoPredictor(), request_timeout_seconds=1) as (running, *streams):
            streams[1].write(posted(b"", length=100))
            # It is read on for a while, so that the answer arrives, and not for ever.
            said, _ = await drip(streams, b" ")
            head, body = said.split(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 408 ")
            assert running.server.service.requests_in_flight == 0
    assert json.loads(body) == {
        "error": {
            "code": "request_timeout",
            "message": "The body did not arrive within 1 seconds.",
        }
    }
    [line] = logs.events("request")
    assert (line["status"], line["level"]) == (408, "WARNING")


async def test_a_client_that_goes_away_while_it_sends_is_forgotten():
    with captured_logs() as logs:
        async with connected(EchoPredictor()) as (running, *streams):
            streams[1].write(posted(b"12345", length=100))
            await until(lambda: running.server.service.requests_in_flight == 1)
            streams[1].close()
            await until(lambda: running.server.service.requests_in_flight == 0)
            assert running.server.service.memory_guard.buffered_bytes == 0
    [line] = logs.events("request")
    assert (line["status"], line["error_code"]) == (499, "client_disconnected")


async def test_the_rest_of_a_body_that_was_answered_must_come_too(monkeypatch):
    monkeypatch.setattr(connections, "HEADERS_TIMEOUT_SECONDS", 0.3)
    async with connected(EchoPredictor()) as (running, *streams):
        streams[1].write(posted(b"1,2,3", CSV, length=1000))
        assert (await streams[0].readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 415 ")
        await drip(streams, b" ")
        await until(lambda: open_connections(running) <= 1)


async def test_a_rest_that_comes_leaves_the_connection_open(monkeypatch):
    monkeypatch.setattr(connections, "HEADERS_TIMEOUT_SECONDS", 0.2)
    async with connected(EchoPredictor()) as (_, reader, writer):
        writer.write(posted(b"12345", CSV, length=10))
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 415 ")
        writer.write(b"6789")
        await asyncio.sleep(0.05)
        writer.write(b"0")
        await asyncio.sleep(0.4)
        writer.write(PING)
        assert b"HTTP/1.1 200 " in await reader.readuntil(b"200 OK\r\n")


async def test_an_answer_that_is_not_taken_is_given_up(monkeypatch):
    monkeypatch.setattr(connections, "STALLED_ANSWER_SECONDS", 0.3)
    predictor = CountdownPredictor()
    with captured_logs() as logs:
        async with running_server(predictor) as running:
            body = json.dumps({"inputs": [["x" * 10_000, 20_000]], "stream": True}).encode()
            with socket.socket() as silent:
                silent.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                silent.connect(("127.0.0.1", running.server.port))
                silent.sendall(posted(body))
                await until(lambda: running.server.service.requests_in_flight == 1)
                await until(lambda: running.server.service.requests_in_flight == 0)
            assert (await running.post(["next", 1])).json() == ["next"]
    assert logs.events("answer_not_taken")
    assert logs.events("request")[0]["error_code"] == "client_disconnected"


NOT_HTTP = {
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\xaa" * 50 + b"\r\n\r\n",
    "endless header": b"GET /ping HTTP/1.1\r\nX: " + b"y" * 100_000,
    "no chunk": CHUNKED + b"zz\r\n",
    "many trailers": CHUNKED + CHUNKS + b"a: b\r\n" * 20_000,
    "endless trailer": CHUNKED + CHUNKS + b"a: " + b"b" * 120_000,
} | {
    # A proxy that reads it otherwise would take the rest for another client's request.
    lengths: b"POST /invocations HTTP/1.1\r\nHost: x\r\n%s\r\n\r\n0\r\n\r\n" % lengths.encode()
    + b"x" * 15
    for lengths in (
        "Content-Length: -1",
        "Content-Length: 1\r\nContent-Length: 2",
        "Content-Length: 15\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 15",
        "Transfer-Encoding: xchunked",
        "Content-Length: +15",
        "Content-Length: 15\r\n Content-Length: 16",
        "Content-Length : 15",
    )
}


@pytest.mark.parametrize("sent", NOT_HTTP.values(), ids=NOT_HTTP)
async def test_what_is_not_http_is_400_in_the_body_of_every_error(sent):
    predictor = EchoPredictor()
    async with connected(predictor) as (running, *streams):
        streams[1].write(sent)
        head, _, body = (await rest_of(streams)).partition(b"\r\n\r\n")
        await until(lambda: running.server.service.requests_in_flight == 0)
        assert (await running.post("next")).json() == ["next"]
    assert head.startswith(b"HTTP/1.1 400 ")
    assert json.loads(body) == {
        "error": {"code": "invalid_request", "message": "Invalid HTTP request received."}
    }
    assert predictor.batches == [["next"]]


@pytest.mark.skipif(sys.platform != "linux", reason="the memory is read from /proc")
async def test_requests_sent_ahead_are_kept_as_bytes_and_all_answered():
    predictor, memory = EchoPredictor(gated=True), ProcessMemory()
    async with connected(predictor) as (running, reader, writer):
        writer.write(posted())
        await until(lambda: bool(predictor.batches))
        taken_bytes = memory.read_bytes()
        writer.write(PING * MANY_PINGS)
        open_ones = running.server._uvicorn.server_state.connections
        await until(lambda: any(each.flow.read_paused for each in open_ones))
        grown_bytes = memory.read_bytes() - taken_bytes
        predictor.release()
        assert (await answer(reader))[1] == b"[1]"
        for _ in range(MANY_PINGS):
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
    memory.close()
    # Each would take 2 KB as a parsed request.
    assert grown_bytes < MANY_PINGS * 1000


async def test_an_absolute_uri_is_its_path():
    async with connected(EchoPredictor()) as (_, *streams):
        streams[1].write(b"GET http://example.com/ping?x=1 HTTP/1.1\r\nHost: example.com\r\n\r\n")
        assert (await streams[0].readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 ")


async def test_an_offer_of_another_protocol_is_not_taken():
    offer = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n"
    async with connected(EchoPredictor()) as (_, reader, writer):
        # What follows in the same packet is the next request.
        writer.write(posted(headers=offer) + b"GET /ping HTTP/1.1\r\nHost: x\r\n%s\r\n" % offer)
        assert (await answer(reader))[1] == b"[1]"
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
        writer.write(posted())
        assert b"[1]" in await reader.readuntil(b"[1]")


@pytest.mark.parametrize("version", [b"HTTP/1.1\r\nConnection: close", b"HTTP/1.0"])
async def test_a_half_closed_connection_gets_its_answer(version):
    predictor = EchoPredictor(gated=True)
    async with connected(predictor) as (running, reader, writer):
        writer.write(posted().replace(b"HTTP/1.1", version))
        writer.write_eof()
        await until(lambda: bool(predictor.batches))
        # The end of the client's data was read before this connection was made.
        assert (await running.client.get("/ping")).status_code == 200
        predictor.release()
        head, body = (await reader.read()).split(b"\r\n\r\n")
    assert b" 200 " in head.partition(b"\r\n")[0]
    assert body == b"[1]"


async def test_a_connection_that_ends_unannounced_costs_no_compute():
    # A client that only stopped sending looks like one that is gone.
    predictor = EchoPredictor(gated=True)
    async with running_server(predictor, max_batch_size=1) as running:
        first, second = await connect(running), await connect(running)
        first[1].write(posted())
        await until(lambda: bool(predictor.batches))
        second[1].write(posted())
        await until(lambda: running.server.service.queue_length == 1)
        second[1].write_eof()
        await until(lambda: running.server.service.queue_length == 0)
        predictor.release()
        assert (await answer(first[0]))[1] == b"[1]"
        for _, writer in (first, second):
            writer.close()
    assert len(predictor.batches) == 1


async def test_requests_in_one_packet_are_answered_in_their_order():
    async with connected(EchoPredictor()) as (_, reader, writer):
        bodies = [json.dumps({"inputs": [number]}).encode() for number in range(20)]
        # A few trailers are as allowed as headers are.
        writer.write(b"".join(map(posted, bodies)) + CHUNKED + CHUNKS + b"a: b\r\n\r\n")
        answers = [(await answer(reader))[1] for _ in (*bodies, CHUNKED)]
    assert answers == [*(b"[%d]" % number for number in range(20)), b"[1]"]


async def test_a_request_is_answered_before_what_is_not_http_behind_it():
    predictor = EchoPredictor(gated=True)
    async with connected(predictor) as (_, *streams):
        streams[1].write(posted() + b"\x00 this is not HTTP\r\n\r\n")
        await until(lambda: bool(predictor.batches))
        predictor.release()
        head, body = (await rest_of(streams)).split(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 ")
    assert b"connection: close" in head
    assert body == b"[1]"


async def test_a_client_that_left_during_the_parsing_costs_no_compute():
    entered, leave = threading.Event(), threading.Event()

    class Slow(EchoPredictor):
        def parse(self, body):
            entered.set()
            assert leave.wait(PATIENCE_SECONDS)
            return super().parse(body)

    predictor = Slow()
    with captured_logs() as logs:
        async with connected(predictor) as (running, *streams):
            # So long that it is parsed on a thread.
            body = json.dumps({"inputs": ["x" * 40_000]}).encode()
            streams[1].write(posted(body))
            await asyncio.to_thread(entered.wait, PATIENCE_SECONDS)
            streams[1].close()
            await until(lambda: open_connections(running) == 1)
            leave.set()
            await until(lambda: running.server.service.requests_in_flight == 0)
    assert not predictor.batches
    [line] = logs.events("request")
    assert (line["status"], line["error_code"]) == (499, "client_disconnected")


async def test_answers_of_a_server_that_drains_end_their_connections():
    # Without the header a client sends its next request on the connection, and loses it.
    predictor = EchoPredictor(gated=True)
    async with running_server(predictor, max_batch_size=1) as running:
        clients = [await connect(running) for _ in range(3)]
        for _, writer in clients:
            writer.write(posted())
        await until(lambda: running.server.service.requests_in_flight == 3)
        running.server.stop()
        predictor.release(3)
        answers = [(await rest_of(streams)).split(b"\r\n\r\n") for streams in clients]
    for head, body in answers:
        assert head.startswith(b"HTTP/1.1 200 ")
        assert b"connection: close" in head
        assert body == b"[1]"


@pytest.mark.parametrize("predictor_type", [EchoPredictor, CountdownPredictor])
async def test_clients_that_left_make_room_before_another_is_refused(predictor_type):
    predictor = predictor_type(gated=True)
    body = json.dumps({"inputs": [["a", 1]]}).encode()
    request = posted(body)
    async with running_server(predictor, max_batch_size=1, max_queue_length=4) as running:
        service = running.server.service
        assert not service.is_computing  # loading is over
        # Its data is read before the ends of the connections that were made later.
        reader, writer = await connect(running)
        clients = [await connect(running) for _ in range(5)]
        clients[0][1].write(request)
        # The other four fit only if the compute thread has taken this one.
        await until(lambda: service.is_computing and not service.queue_length)
        for _, each in clients[1:]:
            each.write(request)
        await until(lambda: service.queue_length == 4)
        writer.write(request)
        for _, each in clients[1:]:
            each.close()
        await until(lambda: service.requests_in_flight == 2)
        predictor.release(2)
        assert (await answer(reader))[0].startswith(b"HTTP/1.1 200 ")
        for _, each in (clients[0], (reader, writer)):
            each.close()
