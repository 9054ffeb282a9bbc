"""A run of a design: what it measures, and what faults of endpoint, client and account do to it."""

import os
import signal
import struct
import threading
import time
import zlib
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from slipway.benchmarking import self_test
from slipway.benchmarking.answers import Observed
from slipway.benchmarking.design import shown
from slipway.benchmarking.endpoint import Instances, cost_per_hour
from slipway.benchmarking.figures import over_trials, trial_figures
from slipway.benchmarking.load import Load
from slipway.benchmarking.results import as_document, request_lines
from slipway.benchmarking.run import Run, Trial
from slipway.benchmarking.self_test import Level, driver_limit
from slipway.benchmarking.self_test import test_level as measured_level
from slipway.errors import UserError
from slipway.json_text import parse_json
from tests.support.projects import refusal
from tests.unit.benchmarking.stub_endpoint import (
    LOCAL,
    Answered,
    Request,
    make_run,
    ok,
    stub_server,
    written_design,
)

TARGET = "X-Amzn-SageMaker-Target-Variant"


@pytest.fixture(scope="module")
def next_stub():
    with stub_server() as make:
        yield make


@pytest.fixture
def stub(next_stub):
    return next_stub()


def carried_out(*given: Any, **changed: Any) -> Run:
    run = make_run(*given, **changed)
    run.carry_out()
    return run


def document_of(run: Run) -> dict[str, Any]:
    now = datetime.now(UTC)
    return as_document(run, now, now)


def test_every_cell_is_measured_in_each_round_in_a_random_order(stub, tmp_path):
    design = written_design(
        tmp_path, factors={"concurrency": [1, 2], "batch": [1, 3]}, trials=2, seconds=0.01
    )
    run = carried_out(stub, design)
    assert run.stopped is None
    orders = [[shown(row.levels) for row in run.trials if row.round == number] for number in (1, 2)]
    assert set(orders[0]) == set(orders[1]) == {shown(cell.levels()) for cell in design.cells()}
    assert len(orders[0]) == 4
    assert orders[0] != orders[1]
    for row in run.trials:
        found = row.figures
        assert found["items_per_second"] == pytest.approx(
            row.levels["batch"] * found["requests_per_second"], rel=1e-4
        )
        assert found["p50_milliseconds"] <= found["p99_milliseconds"]


def test_an_interval_needs_five_trials_and_a_core_that_is_not_used_up():
    trials = [{"p50_milliseconds": value} for value in (10.0, 12.0, 11.0, 14.0, 13.0)]
    generator = np.random.default_rng(1)
    found = over_trials(trials, generator)["p50_milliseconds"]
    assert found == {"value": 12.0, "low": 10.0, "high": 14.0, "deviation": 1.58114}
    found = over_trials(trials[:4], generator)["p50_milliseconds"]
    assert found == {"value": 11.5, "low": None, "high": None, "deviation": 1.70783}
    # A figure that a trial lacks has no median.
    assert over_trials([*trials, {}], generator) == {}
    load = Load.__new__(Load)
    load.samples, load.seconds, load.processor_seconds = [], 10.0, 9.0
    assert driver_limit(load) == "the client used 90% of a core"
    load.processor_seconds = 7.0
    assert driver_limit(load) is None


def test_requests_name_the_variant_of_their_engine_and_the_component(stub, tmp_path):
    factors = {"concurrency": [1], "engine": {"vllm": "main", "trtllm": "candidate"}}
    design = written_design(tmp_path, factors=factors, seconds=0.01)
    run = carried_out(stub, design, component="ranker-component")
    names = (TARGET, "X-Amzn-SageMaker-Inference-Component")
    assert {tuple(each.headers[name] for name in names) for each in stub.requests} == {
        ("main", "ranker-component"),
        ("candidate", "ranker-component"),
    }
    assert {row.levels["engine"] for row in run.trials} == {"vllm", "trtllm"}


def test_each_model_of_an_endpoint_is_asked_by_its_variant_and_has_its_own_figures(stub, tmp_path):
    failed = 500, {}, b""
    stub.answer = lambda number, request: (
        ok(number, request) if request.headers[TARGET] == "main" else failed
    )
    factors = {"concurrency": [1], "variant": ["main", "candidate"]}
    run = carried_out(stub, written_design(tmp_path, factors=factors, seconds=0.01))
    found = {row.levels["variant"]: row.figures["failed_percent"] for row in run.trials}
    assert found == {"main": 0, "candidate": 100}


def test_a_variant_that_the_endpoint_lacks_is_told_before_any_request(stub, tmp_path):
    factors = {"concurrency": [1], "variant": ["main", "candidate"]}
    run = make_run(stub, written_design(tmp_path, factors=factors))
    caught = refusal(run.check_variants)
    make_run(stub, written_design(tmp_path)).check_variants()
    assert stub.requests == []
    assert str(caught) == (
        "1 problem\n"
        "- ranker-production has no variant candidate [SW755]\n"
        "    Name variants of the endpoint in `factors`: main."
    )


def test_throttling_and_a_burst_of_server_errors_are_counted_and_survived(stub, tmp_path):
    throttled = 429, {"x-amzn-ErrorType": "ThrottlingException:http://x"}, b'{"message": ""}'
    unavailable = 503, {}, b'{"__type": "com.amazon#ServiceUnavailable"}'
    faults = {4: throttled, 7: unavailable, 8: unavailable}
    stub.answer = lambda number, request: faults.get(number) or ok(number, request)
    # With one client it is known which request is which.
    design = written_design(tmp_path, factors={"concurrency": [1]}, requests=12)
    run = carried_out(stub, design)
    assert run.stopped is None
    (row,) = run.trials
    assert row.failures == {"503 ServiceUnavailable": 2, "429 ThrottlingException": 1}
    assert 0 < row.figures["failed_percent"] < 50
    assert row.figures["requests_per_second"] > 0


def test_an_endpoint_that_answers_no_more_ends_the_run(stub, tmp_path):
    gone = 500, {}, b"gone"
    stub.answer = lambda number, request: ok(number, request) if number < 30 else gone
    design = written_design(tmp_path, factors={"concurrency": [25]}, seconds=30.0)
    run = carried_out(stub, design, patience_seconds=0.05)
    assert run.stopped is not None
    assert run.stopped.endswith("the last one: a request was answered with 500: gone")
    assert run.trials[0].is_cut
    document = document_of(run)
    # What was measured is there, and is no result.
    assert document["measured"][0]["failures"]["500"] > 0
    assert document["cells"][0]["trials"] == 0


def test_credentials_that_expire_or_cannot_be_renewed_end_the_run(stub, tmp_path, monkeypatch):
    expired = 403, {"x-amzn-ErrorType": "ExpiredTokenException"}, b'{"message": "expired"}'
    stub.answer = lambda number, request: ok(number, request) if number < 6 else expired
    run = carried_out(stub, written_design(tmp_path, seconds=30.0))
    assert run.stopped is not None
    assert run.stopped.startswith("the credentials are no longer valid: ")
    assert run.trials[0].figures["requests_per_second"] > 0

    def refuse() -> None:
        raise EOFError("no terminal")

    monkeypatch.setattr(stub.access, "credentials", refuse)
    run = carried_out(stub, written_design(tmp_path))
    assert run.stopped == "the credentials cannot be renewed: no terminal"
    assert run.trials == []


def test_ctrl_c_keeps_what_was_measured(stub, tmp_path):
    def answer(number: int, request: Request) -> Answered:
        if number == 10:
            os.kill(os.getpid(), signal.SIGINT)
        return ok(number, request)

    written: list[int] = []
    stub.answer = answer
    run = carried_out(
        stub,
        written_design(tmp_path, seconds=30.0),
        write=lambda _row, requests: written.append(len(requests)),
    )
    assert run.stopped == "it was stopped by Ctrl-C"
    (row,) = run.trials
    assert row.is_cut
    assert not row.counts
    assert written[0] >= 5
    assert document_of(run)["stopped"] == "it was stopped by Ctrl-C"


def test_a_disk_that_is_full_ends_the_run_with_what_was_measured(stub, tmp_path):
    full = UserError.of("SW000", "no room", "Make room.")  # type: ignore[arg-type]

    def write(*_: object) -> None:
        raise full

    run = carried_out(stub, written_design(tmp_path, trials=3), write=write)
    assert run.problem is full
    assert run.stopped == "no room"
    assert len(run.trials) == 1


def test_a_level_that_the_client_cannot_reach_is_not_measured(stub, tmp_path):
    def test(concurrency: int | None, rate: float | None, _body: bytes) -> Level:
        reason = "the client reaches 70% of the ideal rate" if concurrency == 8 else None
        return Level(concurrency, rate, 0.7, 0.0, reason)

    said: list[str] = []
    design = written_design(tmp_path, factors={"concurrency": [1, 8]}, seconds=0.01)
    run = carried_out(stub, design, test=test, say=said.append)
    assert {row.levels["concurrency"] for row in run.trials} == {1}
    assert said[0] == (
        "self-test: concurrency 8 is not measured: the client reaches 70% of the ideal rate"
    )
    cells = {cell["levels"]["concurrency"]: cell for cell in document_of(run)["cells"]}
    assert cells[8]["not_measured"] == "the client reaches 70% of the ideal rate"
    assert cells[8]["figures"] == {}


def test_a_rate_that_the_client_cannot_send_is_no_result(stub, tmp_path, monkeypatch):
    design = written_design(
        tmp_path, factors={"requests_per_second": [200]}, seconds=0.06, arrivals="constant"
    )
    slow = Load._send

    async def send(self: Load, *given: Any) -> Any:
        # The event loop is busy elsewhere, so that a request is sent late.
        time.sleep(0.02)
        return await slow(self, *given)

    monkeypatch.setattr(Load, "_send", send)
    run = carried_out(stub, design)
    (row,) = run.trials
    assert row.client_limit is not None
    assert row.client_limit.startswith("the client sent requests ")
    assert not row.counts
    assert "the client sent requests" in document_of(run)["cells"][0]["not_measured"]


def test_a_slow_server_makes_an_open_loop_wait_and_not_the_client_late(stub, tmp_path):
    one_at_a_time = threading.Lock()

    def answer(number: int, request: Request) -> Answered:
        with one_at_a_time:
            time.sleep(0.01)
        return ok(number, request)

    design = written_design(
        tmp_path, factors={"requests_per_second": [200]}, seconds=0.2, arrivals="constant",
        connections=2,
    )  # fmt: skip
    stub.answer = answer
    run = carried_out(stub, design)
    (row,) = run.trials
    # Half of the rate is answered, so the last request has waited for about as long as it all took.
    assert row.figures["p99_milliseconds"] > 100
    assert row.figures["late_p99_milliseconds"] > 75


def test_a_trace_is_sent_as_it_is(stub, tmp_path):
    (tmp_path / "trace.csv").write_text("seconds\n7.0\n7.0\n7.2\n")
    given = {"factors": {"batch": [1]}, "trace": "trace.csv"}
    design = written_design(tmp_path, seconds=None, **given)
    rows: list[dict[str, Any]] = []

    def write(trial: Trial, requests: Sequence[Observed]) -> None:
        rows.extend(map(parse_json, request_lines(trial, requests).splitlines()))

    carried_out(stub, design, write=write)
    assert sorted(row["intended_milliseconds"] for row in rows) == [0, 0, 200]
    assert {(row["batch"], row["trial"], row["order"], row["kind"]) for row in rows} == {
        (1, 1, 1, "200")
    }


def frame(payload: bytes, **headers: str) -> bytes:
    """Returns an event of AWS's binary event streams."""
    encoded = b"".join(
        struct.pack("!B", len(name)) + name.encode() + b"\x07"
        + struct.pack("!H", len(value)) + value.encode()
        for name, value in headers.items()
    )  # fmt: skip
    prelude = struct.pack("!II", 16 + len(encoded) + len(payload), len(encoded))
    begun = prelude + struct.pack("!I", zlib.crc32(prelude)) + encoded + payload
    return begun + struct.pack("!I", zlib.crc32(begun))


PART = {":message-type": "event", ":event-type": "PayloadPart"}
STREAM = {"Content-Type": "application/vnd.amazon.eventstream"}


def test_a_stream_has_a_first_token_and_times_between_tokens(stub, tmp_path):
    body = frame(b'data: {"n": 1}\n', **PART) + frame(b'data: {"n": 2}\n', **PART)

    def answer(number: int, _request: Request) -> Answered:
        if number == 3:
            told = {":message-type": "exception", ":exception-type": "ModelStreamError"}
            return 200, STREAM, frame(b"broke", **told)
        return 200, STREAM, body

    request = {"body": {"inputs": "{input}"}, "stream": True, "tokens_key": "n"}
    stub.answer = answer
    design = written_design(tmp_path, factors={"concurrency": [1]}, request=request, requests=10)
    run = carried_out(stub, design)
    assert {each.path for each in stub.requests} == {
        "/endpoints/ranker-production/invocations-response-stream"
    }
    (row,) = run.trials
    assert row.failures == {"broken stream": 1}
    found = row.figures
    assert 0 < found["first_token_p50_milliseconds"] <= found["p50_milliseconds"] * 1.01
    assert found["between_tokens_p50_milliseconds"] >= 0
    # The numbers under the key are tokens.
    assert found["tokens_per_second"] == pytest.approx(3 * found["requests_per_second"], rel=1e-4)


def test_a_million_requests_cost_what_the_instances_cost(stub, tmp_path):
    stub.count = 2
    run = carried_out(stub, written_design(tmp_path))
    (row,) = run.trials
    price, rate = row.usd_per_hour, row.figures["requests_per_second"]
    assert price == pytest.approx(2 * 0.7364)
    assert row.figures["usd_per_million_requests"] == pytest.approx(
        price / rate / 3600 * 1e6, rel=1e-4
    )
    assert row.cost.startswith("on demand, prices of ")
    assert document_of(run)["cells"][0]["instances"] == ["2 x ml.g4dn.xlarge"]


def test_an_unknown_price_gives_no_cost():
    instances = (Instances("main", ("ml.unheard.of",), 1),)
    usd, why = cost_per_hour(instances, None, LOCAL)
    assert (usd, why) == (None, "no published price of ml.unheard.of in us-east-1")
    # Instances of a pool can be of any of its types.
    pool = Instances("main", ("ml.g5.xlarge", "ml.g6.xlarge"), 1)
    assert cost_per_hour((pool,), None, LOCAL) == (
        None, "the type of the instances of main is not known"
    )  # fmt: skip
    assert not any("usd" in name for name in trial_figures([Observed(0, 0, 5)], 1, 1, usd))


def test_the_self_test_measures_the_client(monkeypatch):
    # A short one shows as well that the driver keeps up with a server of 50 ms.
    monkeypatch.setattr(self_test, "_WARM_UP_SECONDS", 0.05)
    monkeypatch.setattr(self_test, "_SECONDS", 0.2)
    found = measured_level(2, None, b"{}")
    assert 0.5 < found.share <= 1.0
