"""A shadow's captured answers beside the production variant's, from what S3 and CloudWatch have."""

import base64
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from botocore.response import StreamingBody

from tests.support.projects import config_text, write_project

NOW = datetime(2026, 11, 28, 20, 7, 30, tzinfo=UTC)
ENDPOINT = "tiny-production"
FOLDER = f"tiny/{ENDPOINT}"
SECTIONS = """\
endpoint:
  shadow:
    sampling_percent: 100
    serving: {max_batch_size: 4}
  data_capture: {destination: "s3://mine/tiny/"}
"""
LATENCY = {("AllTraffic", "p50"): [2_000.0], ("Shadow", "p99"): [9_000.0, 11_000.0]}


def record(
    request: str, answer: Any, minutes: float = 1, inference_id: str | None = None
) -> dict[str, Any]:
    """A line of SageMaker's, of some minutes ago; an answer that is no text is JSON."""
    kind = "CSV" if isinstance(answer, str) else "JSON"
    output = {"data": answer if isinstance(answer, str) else json.dumps(answer), "encoding": kind}
    at = NOW - timedelta(minutes=minutes)
    event = {"eventId": f"{at}{request}", "inferenceTime": f"{at:%Y-%m-%dT%H:%M:%SZ}"}
    if inference_id is not None:
        event["inferenceId"] = inference_id
    captured = {"data": base64.b64encode(request.encode()).decode(), "encoding": "BASE64"}
    sides = {"endpointInput": captured, "endpointOutput": output}
    return {"captureData": sides, "eventMetadata": event, "eventVersion": "0"}


class Account:
    """S3 with what was captured, CloudWatch with latencies, and the time of STS."""

    def __init__(self, production: Sequence[Any], shadow: Sequence[Any]) -> None:
        self.objects = {
            f"{FOLDER}/{variant}/2026/11/28/20/01-00-000-a.jsonl": "".join(
                f"{each if isinstance(each, str) else json.dumps(each)}\n" for each in lines
            ).encode()
            for variant, lines in (("AllTraffic", production), ("Shadow", shadow))
        }
        self._operation = ""

    def client(self, _: str) -> "Account":
        return self

    def get_caller_identity(self) -> Any:
        date = format_datetime(NOW, usegmt=True)
        return {"ResponseMetadata": {"HTTPHeaders": {"date": date}}}

    def get_paginator(self, operation: str) -> "Account":
        self._operation = operation
        return self

    def paginate(self, **asked: Any) -> Iterator[Any]:
        if self._operation == "list_objects_v2":
            assert asked["Bucket"] == "mine"
            begin, after = asked["Prefix"], asked["StartAfter"]
            keys = (key for key in self.objects if key.startswith(begin) and key > after)
            yield {"Contents": [{"Key": key} for key in keys]}
            return
        for query in asked["MetricDataQueries"]:
            stat = query["MetricStat"]
            assert asked["EndTime"] - asked["StartTime"] == timedelta(seconds=stat["Period"])
            variant = stat["Metric"]["Dimensions"][1]["Value"]
            found = LATENCY.get((variant, stat["Stat"]), [])
            result = {"Id": query["Id"], "Timestamps": [NOW] * len(found), "Values": found}
            yield {"MetricDataResults": [result]}

    def get_object(self, **asked: Any) -> Any:
        content = self.objects[asked["Key"]]
        return {"Body": StreamingBody(io.BytesIO(content), len(content))}


@pytest.fixture
def report(tmp_path, monkeypatch, slipway_command):
    """Runs the command on an account; gives its exit code, output and errors."""

    def run(account: Account, *options: str, sections: str = SECTIONS) -> tuple[int, str, str]:
        text = config_text("tiny", ("endpoint:\n", sections))
        if not (tmp_path / "model_configs").exists():
            write_project(tmp_path, {"tiny": text})
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr("slipway.access.open_access", lambda *_: account)
        found: tuple[int, str, str] = slipway_command(
            "shadow-report", "tiny", "--env=production", *options
        )
        return found

    return run


def texts(*answers: str) -> list[Mapping[str, str]]:
    return [{"generated_text": each} for each in answers]


def test_requests_are_paired_by_id_then_by_bytes_and_answers_compared_as_values(report):
    production = [
        record("late", texts("x"), 0),
        record("same", texts("first"), 5),
        record("same", texts("second"), 4),
        record("named", {"text": "a", "score": 1}, 3, "one"),
        record("only here", texts("x")),
    ]
    shadow = [
        # SageMaker may write them in another order, and keys of JSON have none.
        record("same", texts("second"), 3),
        record("same", texts("first but longer"), 4),
        record("another body", {"score": 1, "text": "a"}, 3, "one"),
        record("late", texts("x"), 0),
    ]
    code, text, error = report(Account(production, shadow), "--since", "2h")
    assert code == 0, error
    first = f"s3://mine/{FOLDER}/AllTraffic/2026/11/28/20/01-00-000-a.jsonl:2"
    second = f"s3://mine/{FOLDER}/Shadow/2026/11/28/20/01-00-000-a.jsonl:2"
    assert text.splitlines() == [
        "compared    4 requests of the last 2h: 1 paired by inference id, 3 by their bytes",
        "unpaired    1 of AllTraffic and 0 of Shadow",
        "equal       3 of 4 answers (75.0%)",
        "AllTraffic  ModelLatency p50 2.0 ms",
        "Shadow      ModelLatency p99 11.0 ms",
        "",
        "answers differ at [0].generated_text",
        '  "first"',
        f"    {first}",
        '  "first but longer"',
        f"    {second}",
    ]


def test_few_differences_are_shown_each_from_before_its_first_character(report):
    words = "The same words come before. "
    production = [record(f"{place}", texts(words + "yes" * 50)) for place in range(5)]
    shadow = [record(f"{place}", texts(words + "no\x1b\ud800")) for place in range(5)]
    account = Account(production, shadow)
    code, text, _ = report(account, "--json")
    found = json.loads(text)
    assert (code, found["compared"], found["equal"], len(found["differences"])) == (0, 5, 0, 3)
    shown_first, other = found["differences"][0]["answers"].values()
    assert other == '... words come before. no\\u001b\\ud800"'
    assert shown_first.startswith("... words come before. yesyes")
    assert len(shown_first) == 66
    assert found["latency_milliseconds"]["AllTraffic"] == {"p50": 2, "p95": None, "p99": None}


def test_answers_of_openai_are_compared_and_records_without_an_answer_counted(report):
    def answer(number: int) -> dict[str, Any]:
        return {"id": f"{number}", "object": "chat.completion", "created": number, "choices": []}

    pair = Account([record("x", answer(1))], [record("x", answer(2))])
    code, text, _ = report(pair, "--json")
    assert (code, json.loads(text)["equal"]) == (0, 1)
    without = record("x", "a", inference_id="one")
    del without["captureData"]["endpointOutput"]
    both = [without, record("y", "b")]
    code, output, _ = report(Account(both, both))
    assert code == 0
    assert "compared    1 request of" in output
    assert "unpaired    1 of AllTraffic and 1 of Shadow" in output


def test_what_was_captured_before_the_time_does_not_count(report):
    one = [record("x", "a", 14), record("y", "b", 16)]
    code, text, _ = report(Account(one, one), "--since=15m")
    assert (code, text.partition(" request of")[0]) == (0, "compared    1")
    code, _, error = report(Account([], one), "--since", "15m")
    assert code == 1
    assert (
        "no request was captured of both variants: 0 of AllTraffic and 1 of Shadow, below "
        f"s3://mine/{FOLDER}/ [SW817]"
    ) in error
    code, _, error = report(Account(one, one), "--since", "16d")
    assert (code, "no length of time of at most 15 days [SW409]" in error) == (1, True)


def test_a_shadow_with_another_form_of_answers_is_told_at_its_section(report):
    account = Account(
        [record("x", texts("a")), record("y", texts("a"))],
        [record("x", [[0.1]]), record("y", [[0.5, 2]])],
    )
    code, _, error = report(account)
    assert code == 1
    assert (
        "model_configs/tiny.yaml:25:5: endpoint.shadow.serving: no answer of the shadow has the "
        'form of the production variant\'s: {"generated_text": "text"} '
        'and ["number"] [SW818]'
    ) in error
    # One answer of the same form is enough for a comparison.
    account = Account([record("x", "a"), record("y", {})], [record("x", "b"), record("y", [1])])
    assert report(account)[0] == 0
    # An answer without an item may be of the same form.
    account = Account([record("x", [{"entity": "a"}])], [record("x", [])])
    assert report(account)[0] == 0


def test_a_config_without_a_shadow_or_without_both_bodies_is_told_at_once(report):
    sections = "endpoint:\n  data_capture: {destination: s3://mine/, capture: [input]}\n"
    code, _, error = report(Account([], []), sections=sections)
    assert code == 1
    lines = [line for line in error.splitlines() if line.startswith("- ")]
    assert lines == [
        "- model_configs/tiny.yaml:22:1: endpoint.shadow: the config has no shadow variant to "
        "compare with [SW815]",
        "- model_configs/tiny.yaml:23:3: endpoint.data_capture: requests and answers are not both "
        "captured, so that no answers can be compared [SW816]",
    ]


def test_every_line_that_is_no_record_is_told_with_its_place(report):
    without = record("x", "a")
    without["captureData"] = {}
    lines = ["{", json.dumps(without), "3", record("x", "a")]
    code, _, error = report(Account(lines, lines))
    assert code == 1
    place = f"- s3://mine/{FOLDER}/AllTraffic/2026/11/28/20/01-00-000-a.jsonl"
    told = [line for line in error.splitlines() if line.startswith("- ")]
    assert [line.partition(": ")[0] for line in told] == [f"{place}:{n}:1" for n in (1, 2, 3)]
    assert told[1].endswith(
        "the line is no captured request with its answer: 'endpointOutput' is missing [SW819]"
    )
    assert told[2].endswith("its values have other types [SW819]")
