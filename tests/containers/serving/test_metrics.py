"""What the metrics port tells, read with Prometheus' own parser."""

import asyncio

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from containers.serving.metrics import Metrics
from containers.serving.prometheus import PrometheusMetrics
from containers.serving.settings import ServingSettings
from tests.support.servers import (
    CountdownPredictor,
    EchoPredictor,
    captured_logs,
    running_server,
    until,
)

pytestmark = pytest.mark.anyio


def samples_of(text):
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


class Scrape:
    def __init__(self, text):
        self._samples = samples_of(text)
        self.names = {name for name, _ in self._samples}

    def value(self, name, **labels):
        return self._samples[f"slipway_{name}", frozenset(labels.items())]

    def requests(self):
        return {
            (dict(labels)["status"], dict(labels)["error_code"]): value
            for (name, labels), value in self._samples.items()
            if name == "slipway_requests_total"
        }


async def scrape(running):
    port = running.server.metrics_port
    response = await running.client.get(f"http://127.0.0.1:{port}/metrics")
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    return Scrape(response.text)


async def test_the_metrics_port_has_nothing_else():
    with captured_logs() as logs:
        async with running_server(EchoPredictor(), metrics_port=0) as running:
            [line] = logs.events("metrics_listening")
            assert line["port"] == running.server.metrics_port != running.server.port
            for path in ("/", "/ping", "/invocations"):
                url = f"http://127.0.0.1:{running.server.metrics_port}{path}"
                assert (await running.client.get(url)).status_code == 404


async def test_requests_are_counted_by_status_and_error_code():
    async with running_server(EchoPredictor(), metrics_port=0) as running:
        for inputs in (["a"], ["b", "c"], ["fail"]):
            await running.post(*inputs)
        await running.client.post("/invocations", content=b"{")
        seen = await scrape(running)
        assert seen.requests() == {
            ("200", ""): 2,
            ("400", "invalid_request"): 1,
            ("500", "model_failure"): 1,
        }
        assert seen.value("request_seconds_count") == 4
        # Of those that were computed.
        assert seen.value("queue_seconds_count") == 2
        assert seen.value("compute_seconds_count") == 2
        assert seen.value("batch_rows_count") == 3
        assert seen.value("batch_rows_sum") == 4
        assert seen.value("batch_rows_bucket", le="1.0") == 2
        assert "process_resident_memory_bytes" in seen.names
        assert "process_open_fds" in seen.names


async def test_gauges_show_what_is_there_at_the_moment_and_who_went_away_is_counted():
    predictor = EchoPredictor(gated=True)
    async with running_server(predictor, metrics_port=0, max_batch_size=2) as running:
        first = asyncio.create_task(running.post("a", "b"))
        await until(lambda: predictor.batches == [["a", "b"]])
        second = asyncio.create_task(running.post("c", "d", "e"))
        await until(lambda: running.server.service.queue_length == 3)
        seen = await scrape(running)
        assert seen.value("requests_in_flight") == 2
        assert seen.value("queue_length") == 3
        assert seen.value("batch_rows_in_use") == 2
        assert seen.value("buffered_bytes") == 0
        second.cancel()
        await until(lambda: running.server.service.requests_in_flight == 1)
        assert (await scrape(running)).requests() == {("499", "client_disconnected"): 1}
        predictor.release()
        await first
        seen = await scrape(running)
        for name in ("requests_in_flight", "queue_length", "batch_rows_in_use"):
            assert seen.value(name) == 0


async def test_steps_and_first_pieces_of_a_batch_that_is_computed_in_steps():
    async with running_server(CountdownPredictor(), metrics_port=0) as running:
        await running.stream(["a", 4])
        seen = await scrape(running)
        assert seen.value("first_piece_seconds_count") == 1
        # Joining computes the first of the four.
        assert seen.value("batch_rows_count") == 3
        assert seen.requests() == {("200", ""): 1}
        # An error before the first piece is an answer like any other.
        failed = await running.stream(["fail", 4])
        assert (failed.status_code, failed.json()["error"]["code"]) == (500, "model_failure")
        assert (await scrape(running)).requests()["500", "model_failure"] == 1


async def test_the_port_is_off_by_default():
    assert ServingSettings().metrics_port is None
    async with running_server(EchoPredictor()) as running:
        assert running.server.metrics_port is None
        assert (await running.client.get("/metrics")).status_code == 404


async def test_it_answers_while_the_model_loads_and_until_the_end_of_the_drain():
    predictor = EchoPredictor(gated=True)
    predictor.load_gate.clear()
    async with running_server(predictor, wait_until_ready=False, metrics_port=0) as running:
        assert (await scrape(running)).value("requests_in_flight") == 0
        predictor.load_gate.set()
        await running.until_ready()
        last = asyncio.create_task(running.post("last"))
        await until(lambda: predictor.batches == [["last"]])
        running.server.stop()
        await until(lambda: not running.server._uvicorn.servers[0].sockets)
        assert (await scrape(running)).value("requests_in_flight") == 1
        predictor.release()
        assert (await last).json() == ["last"]
    async with httpx.AsyncClient(trust_env=False) as client:
        with pytest.raises(httpx.ConnectError):
            await client.get(f"http://127.0.0.1:{running.server.metrics_port}/metrics")


@pytest.mark.parametrize("metrics", [Metrics(), PrometheusMetrics()])
def test_every_kind_of_metric_is_kept_or_is_not(metrics):
    metrics.counter("slipway_c", "C.")(2)
    metrics.labelled_counter("slipway_l", "L.", ("x",))("y")
    metrics.histogram("slipway_h", "H.", (1.0, 2.0))(1.5)
    metrics.gauge("slipway_g", "G.", lambda: 7)
    seen = samples_of(metrics.text().decode())
    if type(metrics) is Metrics:
        assert seen == {}
    else:
        assert seen["slipway_c_total", frozenset()] == 2
        assert seen["slipway_l_total", frozenset({("x", "y")})] == 1
        assert seen["slipway_h_bucket", frozenset({("le", "2.0")})] == 1
        assert seen["slipway_g", frozenset()] == 7
