import asyncio
import contextlib
import logging
import socket
from dataclasses import replace

import httpx
import pytest

from containers.serving import app
from containers.serving.predictor import ModelLoadError, ModelLostError
from containers.serving.server import ModelServer
from containers.serving.settings import ServingSettings
from tests.containers.serving.harness import full_server
from tests.support.servers import (
    CountdownPredictor,
    EchoPredictor,
    captured_logs,
    running_server,
    until,
)

pytestmark = pytest.mark.anyio

JSON = {"Content-Type": "application/json"}


def assert_error(response, status, code, message):
    assert response.status_code == status
    assert response.headers["content-type"] == "application/json"
    assert response.json() == {"error": {"code": code, "message": message}}


async def test_ping_is_200_only_when_loaded():
    predictor = EchoPredictor()
    predictor.load_gate.clear()
    async with running_server(predictor, wait_until_ready=False) as running:
        ping = await running.client.get("/ping")
        assert_error(ping, 503, "not_ready", "The server is loading.")
        early = await running.post("a")
        assert_error(early, 503, "not_ready", "The model is still loading.")
        assert early.headers["retry-after"] == "1"
        predictor.load_gate.set()
        await running.until_ready()
        assert (await running.post("a")).json() == ["a"]


async def test_a_request_is_answered_and_logged_under_its_id():
    headers = {"X-Amzn-RequestId": "abc-1", "X-Amzn-SageMaker-Inference-Id": "i-7"}
    with captured_logs() as logs:
        async with running_server(EchoPredictor()) as running:
            response = await running.post("a", "b", headers=headers)
            replaced = await running.post("a", headers={"X-Amzn-RequestId": "x" * 200})
    assert len(replaced.headers["x-amzn-requestid"]) == 36
    assert response.status_code == 200
    assert response.json() == ["a", "b"]
    assert response.headers["x-amzn-requestid"] == "abc-1"
    line, _ = logs.events("request")
    assert line["request_id"] == "abc-1"
    assert line["inference_id"] == "i-7"
    assert (line["level"], line["status"], line["batch_size"]) == ("INFO", 200, 2)
    assert line["queue_milliseconds"] >= 0
    assert line["compute_milliseconds"] >= 0
    assert line["milliseconds"] >= line["compute_milliseconds"]


async def test_malformed_bodies_are_400_and_never_join_a_batch():
    predictor = EchoPredictor()
    async with running_server(predictor) as running:
        response = await running.client.post("/invocations", content=b"{", headers=JSON)
        assert_error(
            response,
            400,
            "invalid_request",
            "The body is not valid JSON: Expecting property name enclosed in double quotes "
            "at line 1 column 2.",
        )
        large = b'{"inputs": "' + b"x" * 100_000 + b'"}'
        response = await running.client.post("/invocations", content=large, headers=JSON)
        assert_error(response, 400, "invalid_request", "inputs must be an array.")
    assert predictor.batches == []


@pytest.mark.parametrize(
    ("name", "refused", "accepted", "message"),
    [
        (
            "Content-Type",
            ("text/csv", "application/json; charset=latin-1", "application/jsonl"),
            # JSON is taken with and without its name.
            (None, 'Application/JSON; charset="UTF-8"'),
            "The content type is not supported; send application/json in UTF-8.",
        ),
        (
            "Content-Encoding",
            ("gzip", "br", "identity, gzip"),
            ("Identity",),
            "The content encoding is not supported; send the body uncompressed.",
        ),
    ],
)
async def test_other_media_types_and_compressed_bodies_are_415(name, refused, accepted, message):
    async with running_server(EchoPredictor()) as running:
        for value in (*refused, *accepted):
            headers = {name: value} if value else {}
            response = await running.client.post(
                "/invocations", content=b'{"inputs": [1]}', headers=headers
            )
            if value in accepted:
                assert response.json() == [1]
            else:
                assert_error(response, 415, "unsupported_media_type", message)


async def test_an_oversized_body_is_read_to_its_end_so_that_the_answer_arrives():
    # More than the sockets' buffers hold: the client is still sending when the limit is known.
    body = b"x" * 20_000_000
    async with running_server(EchoPredictor(), max_request_bytes=6_291_456) as running:
        for _ in range(3):
            response = await running.client.post("/invocations", content=body, headers=JSON)
            assert_error(
                response, 413, "request_too_large", "The body exceeds the limit of 6291456 bytes."
            )


async def test_an_oversized_body_is_413_while_it_streams_and_one_without_end_is_cut_off():
    async def chunks(count):
        for _ in range(count):
            yield b"x" * 600

    message = "The body exceeds the limit of 1000 bytes."
    async with running_server(EchoPredictor(), max_request_bytes=1000) as running:
        response = await running.client.post("/invocations", content=chunks(3), headers=JSON)
        assert_error(response, 413, "request_too_large", message)
        # Whether the answer is read before the connection is reset is up to the network.
        with contextlib.suppress(httpx.TransportError):
            endless = chunks(2**60)
            response = await running.client.post("/invocations", content=endless, headers=JSON)
            assert response.status_code == 413
        assert (await running.post("next")).json() == ["next"]


async def test_many_refusals_are_paced_and_a_lone_one_is_not(monkeypatch):
    monkeypatch.setattr("containers.serving.refusals._REFUSALS_PER_SECOND", 20)
    async with full_server() as (running, predictor, waiting):
        loop = asyncio.get_running_loop()

        async def refused():
            assert (await running.post("more")).status_code == 503
            return loop.time()

        begun_at = loop.time()
        ended_at = sorted(await asyncio.gather(*(refused() for _ in range(9))))
        predictor.release(2)
        assert [(await each).status_code for each in waiting] == [200, 200]
    # The first waits for nothing, and each of the others for the one before it.
    assert ended_at[0] - begun_at < ended_at[-1] - begun_at - 0.2
    assert ended_at[-1] - begun_at >= 8 / 20


async def test_a_refused_client_waits_no_longer_than_retry_after_says(monkeypatch):
    monkeypatch.setattr("containers.serving.refusals._REFUSALS_PER_SECOND", 0.01)
    monkeypatch.setattr("containers.serving.refusals._LONGEST_REFUSAL_SECONDS", 0.05)
    async with full_server() as (running, predictor, waiting):
        async with asyncio.timeout(20):  # unbounded, the second would wait for 100 seconds
            refused = await asyncio.gather(*(running.post("more") for _ in range(5)))
        predictor.release(2)
        await asyncio.gather(*waiting)
    assert {each.status_code for each in refused} == {503}


async def test_a_late_answer_is_504_and_what_still_waits_is_not_computed():
    predictor = EchoPredictor(gated=True)
    async with running_server(predictor, request_timeout_seconds=1) as running:
        first = asyncio.create_task(running.post("computing"))
        await until(lambda: predictor.batches == [["computing"]])
        late = await asyncio.gather(first, running.post("waiting"))
        for response in late:
            assert_error(response, 504, "timeout", "The answer was not ready within 1 seconds.")
        predictor.release(2)
        assert (await running.post("next")).json() == ["next"]
    assert predictor.batches == [["computing"], ["next"]]


async def test_a_model_failure_is_500_and_only_the_log_knows_why():
    with captured_logs() as logs:
        async with running_server(EchoPredictor()) as running:
            response = await running.post("fail")
            assert (await running.post("fine")).json() == ["fine"]
    assert_error(response, 500, "model_failure", "The model failed to compute an answer.")
    [failed] = logs.events("batch_failed")
    assert "/secret/path: out of memory" in failed["exception"]


async def test_unknown_paths_and_methods_have_the_same_error_body():
    async with running_server(EchoPredictor()) as running:
        message = "The paths of this server are GET /ping and POST /invocations."
        # A redirect to the path without a slash at its end would lose the body.
        with_slash = await running.client.post("/invocations/", json={"inputs": [1]})
        for unknown in (await running.client.get("/"), with_slash):
            assert_error(unknown, 404, "not_found", message)
        response = await running.client.get("/invocations")
        assert_error(response, 405, "method_not_allowed", "Use GET /ping or POST /invocations.")
        assert response.headers["allow"] == "POST"


async def test_an_error_outside_of_a_model_is_the_json_of_every_error(monkeypatch):
    def fail(_request):
        raise MemoryError("/secret/path")

    monkeypatch.setattr(app, "_RequestRecord", fail)
    async with running_server(EchoPredictor()) as running:
        response = await running.post(1)
        message = "The server failed to answer; its log holds the request id."
        assert_error(response, 500, "internal_error", message)


async def test_accepted_connections_do_not_delay_small_packets():
    async with running_server(EchoPredictor()) as running:
        [connection] = running.server._uvicorn.server_state.connections
        accepted = connection.transport.get_extra_info("socket")
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@pytest.mark.parametrize(
    ("error", "exit_code", "message"),
    [
        (ModelLoadError("/opt/ml/model lacks config.json"), 1, "/opt/ml/model lacks config.json"),
        (KeyError("x"), 2, "unexpected error; the traceback is in this line"),
    ],
)
async def test_a_failed_load_is_one_line_and_a_non_zero_exit(error, exit_code, message):
    server = ModelServer(EchoPredictor(load_error=error), ServingSettings(port=0))
    with captured_logs() as logs:
        assert await server.serve() == exit_code
    [line] = [line for line in logs.lines if line["level"] == logging.getLevelName(logging.ERROR)]
    assert (line["event"], line["message"]) == ("model_load_failed", message)
    assert ("exception" in line) == (exit_code == 2)


@pytest.mark.parametrize("name", ["port", "metrics_port"])
async def test_a_taken_port_is_one_line_and_exit_code_1(name):
    with socket.create_server(("127.0.0.1", 0)) as taken, captured_logs() as logs:
        port = taken.getsockname()[1]
        settings = replace(ServingSettings(port=0), **{name: port})
        assert await ModelServer(EchoPredictor(), settings).serve() == 1
    [line] = logs.events("listen_failed")
    assert line["message"] == f"cannot listen on 127.0.0.1 port {port}: Address already in use"


async def test_requests_that_outlast_the_drain_are_cut_off_and_counted():
    predictor = EchoPredictor(gated=True)
    with captured_logs() as logs:
        async with running_server(predictor, drain_timeout_seconds=1) as running:
            stuck = asyncio.create_task(running.post(1))
            await until(lambda: predictor.batches == [[1]])
            running.server.stop()
            await until(lambda: bool(logs.events("stopped")))
            predictor.release()
            with pytest.raises(httpx.HTTPError):
                (await stuck).raise_for_status()
    assert logs.events("drain_timed_out")[0]["requests_unanswered"] == 1
    assert logs.events("stopped")[0]["exit_code"] == 1


@pytest.mark.parametrize("predictor_type", [EchoPredictor, CountdownPredictor])
async def test_a_lost_model_fails_its_requests_and_ends_the_process(predictor_type):
    predictor = predictor_type(gated=True)
    predictor.fatal_error = ModelLostError("cudaStreamSynchronize: unspecified launch failure")
    one = "fail" if predictor_type is EchoPredictor else ["fail", 1]
    with captured_logs() as logs:
        async with running_server(predictor, max_batch_size=1) as running:
            sent = [asyncio.create_task(running.post(one)) for _ in range(2)]
            await until(lambda: running.server.service.queue_length == 1)
            predictor.release(10)
            answers = [await each for each in sent]
            await until(lambda: bool(logs.events("stopped")))
    assert sorted(answer.status_code for answer in answers) == [500, 503]
    assert logs.events("stopped")[0]["exit_code"] == 1
    [line] = logs.events("model_lost")
    assert line["message"] == "cudaStreamSynchronize: unspecified launch failure"
