"""The function between CloudFormation and CodeBuild, on its own."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

import stacks.image_build
from stacks.image_build import handler

URI = "210987654321.dkr.ecr.eu-west-1.amazonaws.com/slipway/tensorrt:trt10.13-0123456789abcdef"
OLD_URI = f"{URI.rpartition('-')[0]}-fedcba9876543210"
URL = "https://cloudformation-custom-resource-response.s3.amazonaws.com/arn?Signature=a%2Bb"
STACK = "arn:aws:cloudformation:eu-west-1:210987654321:stack/image-tensorrt-production/0"
BUILD = "Project-0A1B:5f2d1c3e-0000-4000-8000-000000000000"
LOG = "https://console.aws.amazon.com/cloudwatch/home?region=eu-west-1#logsV2:log-groups"
IDENTIFIERS = {
    "StackId": STACK,
    "RequestId": "5f2d1c3e-1111-4000-8000-000000000000",
    "LogicalResourceId": "BuildImage0",
    "PhysicalResourceId": URI,
}


def request(kind: str, **fields: Any) -> dict[str, Any]:
    return {
        "RequestType": kind,
        "ResponseURL": URL,
        "StackId": STACK,
        "RequestId": IDENTIFIERS["RequestId"],
        "LogicalResourceId": "BuildImage0",
        "ResourceType": "Custom::SlipwayImage",
        "ResourceProperties": {
            "ServiceToken": "arn:aws:lambda:eu-west-1:210987654321:function:Function",
            "ProjectName": "Project-0A1B",
            "ImageUri": URI,
            "BaseImage": "nvcr.io/nvidia/tensorrt:25.09-py3",
            "Target": "compiler",
        },
        **fields,
    }


VARIABLES = [
    {"name": "IMAGE_URI", "value": URI, "type": "PLAINTEXT"},
    {"name": "BASE_IMAGE", "value": "nvcr.io/nvidia/tensorrt:25.09-py3", "type": "PLAINTEXT"},
    {"name": "TARGET", "value": "compiler", "type": "PLAINTEXT"},
    {
        "name": "SLIPWAY_ANSWER_TO",
        "value": json.dumps({"ResponseURL": URL, **IDENTIFIERS}),
        "type": "PLAINTEXT",
    },
]
START = {
    "projectName": "Project-0A1B",
    "idempotencyToken": IDENTIFIERS["RequestId"],
    "environmentVariablesOverride": VARIABLES,
}


def news(status: str) -> dict[str, Any]:
    return {
        "source": "aws.codebuild",
        "detail-type": "CodeBuild Build State Change",
        "detail": {
            "build-status": status,
            "project-name": "Project-0A1B",
            "build-id": f"arn:aws:codebuild:eu-west-1:210987654321:build/{BUILD}",
        },
    }


def build(variables: list[dict[str, str]], **fields: Any) -> dict[str, Any]:
    environment = {
        "type": "LINUX_CONTAINER", "image": "i", "computeType": "BUILD_GENERAL1_MEDIUM",
        "environmentVariables": variables,
    }  # fmt: skip
    return {"builds": [{"id": BUILD, "environment": environment, **fields}]}


class Account:
    """CodeBuild's real client with its answers given, and the answers that CloudFormation gets."""

    def __init__(self) -> None:
        self.codebuild = boto3.client(
            "codebuild",
            region_name="eu-west-1",
            aws_access_key_id="test",
            aws_secret_access_key="test",  # noqa: S106  # nobody's
        )
        self.stubber = Stubber(self.codebuild)
        self.answers: list[tuple[str, dict[str, str]]] = []

    def handle(self, event: dict[str, Any]) -> None:
        with self.stubber:
            handler.handle(event, self.codebuild, lambda *answer: self.answers.append(answer))
        self.stubber.assert_no_pending_responses()


@pytest.fixture
def account() -> Account:
    return Account()


@pytest.mark.parametrize(
    "event",
    [request("Create"), request("Update", PhysicalResourceId=OLD_URI)],
    ids=["create", "update"],
)
def test_a_request_starts_a_build_and_leaves_the_answer_to_its_end(account: Account, event):
    account.stubber.add_response("start_build", {"build": {"id": BUILD}}, START)
    account.handle(event)
    assert account.answers == []


def test_a_build_that_does_not_start_is_answered_at_once(account: Account):
    account.stubber.add_client_error(
        "start_build", "AccountLimitExceededException", "Cannot have more than 1 builds in queue"
    )
    account.handle(request("Create"))
    assert account.answers == [
        (
            URL,
            {
                **IDENTIFIERS,
                "Status": "FAILED",
                "Reason": f"The build of {URI} did not start: An error occurred "
                "(AccountLimitExceededException) when calling the StartBuild operation: "
                "Cannot have more than 1 builds in queue",
            },
        )
    ]


def test_deleting_keeps_the_image_and_the_identity(account: Account):
    account.handle(request("Delete", PhysicalResourceId=OLD_URI))
    assert account.answers == [
        (
            URL,
            {
                **IDENTIFIERS,
                "PhysicalResourceId": OLD_URI,
                "Status": "SUCCESS",
                "Reason": "Images stay in their repository.",
            },
        )
    ]


@pytest.mark.parametrize(
    ("status", "answered"),
    [
        ("SUCCEEDED", "SUCCESS"),
        ("FAILED", "FAILED"),
        ("FAULT", "FAILED"),
        ("STOPPED", "FAILED"),
        ("TIMED_OUT", "FAILED"),
    ],
)
def test_the_end_of_a_build_is_told_with_the_link_to_its_log(account: Account, status, answered):
    described = build(VARIABLES, logs={"deepLink": LOG})
    account.stubber.add_response("batch_get_builds", described, {"ids": [BUILD]})
    account.handle(news(status))
    reason = f"The build of {URI} ended as {status}. Its log: {LOG}"
    assert account.answers == [(URL, {**IDENTIFIERS, "Status": answered, "Reason": reason})]


@pytest.mark.parametrize("status", ["FAULT", "TIMED_OUT"])
def test_a_phase_that_ends_its_build_is_told_too(account: Account, status):
    account.stubber.add_response(
        "batch_get_builds", build(VARIABLES, logs={"deepLink": LOG}), {"ids": [BUILD]}
    )
    event = news(status)
    detail = event["detail"]
    detail["completed-phase-status"] = detail.pop("build-status")
    detail["completed-phase"] = "BUILD"
    account.handle({**event, "detail-type": "CodeBuild Build Phase Change"})
    reason = f"The build of {URI} ended as {status}. Its log: {LOG}"
    assert account.answers == [(URL, {**IDENTIFIERS, "Status": "FAILED", "Reason": reason})]


def test_a_build_without_a_log_is_told_as_well(account: Account):
    account.stubber.add_response("batch_get_builds", build(VARIABLES), {"ids": [BUILD]})
    account.handle(news("TIMED_OUT"))
    assert account.answers[0][1]["Reason"].endswith("TIMED_OUT. Its log: none was written")


def test_nobody_is_told_of_a_build_that_was_started_by_hand(account: Account):
    account.stubber.add_response("batch_get_builds", build(VARIABLES[:2]), {"ids": [BUILD]})
    account.handle(news("FAILED"))
    assert account.answers == []


def test_an_answer_stays_within_cloudformations_4096_bytes(account: Account):
    account.stubber.add_client_error("start_build", "Error", "x" * 10_000)
    account.handle(request("Create"))
    ((_, content),) = account.answers
    assert len(json.dumps(content)) < 4096
    assert len(content["Reason"]) == 2000


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
    handler.put(f"{address}/arn?Signature=a%2Bb", {"Status": "SUCCESS"})
    # The signature of the address is of a request without one.
    assert seen == [("PUT", "/arn?Signature=a%2Bb", "", b'{"Status": "SUCCESS"}')]


def test_an_answer_that_is_refused_is_an_error_and_so_tried_again(received):
    with pytest.raises(OSError, match="HTTP Error 403"):
        handler.put(f"{received[0]}/expired", {})


def test_the_file_runs_alone_as_in_lambda(tmp_path: Path):
    source = Path(stacks.image_build.__file__).parent / "handler.py"
    (tmp_path / "handler.py").write_bytes(source.read_bytes())
    code = (
        "import handler, sys\n"
        "assert not {'boto3', 'aws_cdk', 'slipway', 'stacks'} & set(sys.modules)\n"
        "print(handler.handler.__name__)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True
    )
    assert (result.stdout, result.stderr) == ("handler\n", "")
