"""What the functions have in common: their answers, and packages that run alone."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from slipway.stacks.constructs.handler_function import copy_function
from slipway.stacks.functions.answers import Outcome, put, respond, run

EVENT = {
    "RequestType": "Create",
    "ResponseURL": "https://answer",
    "StackId": "s" * 200,
    "RequestId": "r" * 36,
    "LogicalResourceId": "Guard",
}


def answer_to(event: dict[str, str], outcome: Outcome | Exception) -> dict[str, str]:
    answers: list[tuple[str, dict[str, str]]] = []

    def work() -> Outcome:
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    respond(event, lambda *answer: answers.append(answer), "own", work, lambda _: None)
    ((url, answer),) = answers
    assert url == "https://answer"
    assert answer.items() >= {key: EVENT[key] for key in EVENT if key.endswith("Id")}.items()
    return answer


@pytest.mark.parametrize(
    ("earlier", "made", "expected"),
    [(None, None, "own"), (None, "made", "made"), ("earlier", None, "earlier")],
)
def test_a_resource_keeps_its_id(earlier: str | None, made: str | None, expected: str) -> None:
    event = EVENT | ({"PhysicalResourceId": earlier} if earlier else {})
    assert answer_to(event, Outcome("done", made))["PhysicalResourceId"] == expected


def test_an_error_is_answered_within_cloudformations_4096_bytes() -> None:
    answer = answer_to(EVENT, ValueError("x" * 10_000))
    assert (answer["Status"], answer["Reason"]) == ("FAILED", "x" * 2000)
    assert len(json.dumps(answer)) < 4096


def test_a_throttled_call_is_tried_ten_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    found: list[dict[str, object]] = []
    run(lambda _, client, __, ___: found.append(client("sts").meta.config.retries), {}, None)
    [retries] = found
    assert (retries["mode"], retries["total_max_attempts"]) == ("standard", 10)


@pytest.fixture
def received() -> Iterator[tuple[str, list[tuple[str, str, str | None, bytes]]]]:
    """The address of a server, and what it was sent."""
    seen: list[tuple[str, str, str | None, bytes]] = []

    class Bucket(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            seen.append((self.command, self.path, self.headers["Content-Type"], body))
            self.send_response(403 if self.path == "/expired" else 200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Bucket) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", seen
        server.shutdown()
        thread.join()


def test_an_answer_is_put_without_a_content_type(received):
    address, seen = received
    put(f"{address}/arn?Signature=a%2Bb", {"Status": "SUCCESS"})
    # The signature of the address is of a request without one.
    assert seen == [("PUT", "/arn?Signature=a%2Bb", "", b'{"Status": "SUCCESS"}')]


def test_an_answer_that_is_refused_is_an_error_and_so_tried_again(received):
    with pytest.raises(OSError, match="HTTP Error 403"):
        put(f"{received[0]}/expired", {})


@pytest.mark.parametrize(
    "module", ["endpoint_update.handler", "foundation_guard", "image_build", "remote_publishing"]
)
def test_a_package_runs_alone(module: str, tmp_path: Path) -> None:
    """Lambda has the package, the standard library and boto3."""
    copy_function(module, tmp_path)
    script = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); "
        f"from functions.{module} import handler; "
        "print(callable(handler), *{name.partition('.')[0] for name in sys.modules})"
    )
    command = [sys.executable, "-I", "-c", script]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert said[0] == "True"
    assert {"slipway", "stacks", "boto3", "aws_cdk"} & set(said) == set()
