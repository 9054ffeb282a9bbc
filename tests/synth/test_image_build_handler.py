"""The function between CloudFormation and CodeBuild, on its own."""

from __future__ import annotations

import json
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber

from slipway.stacks.functions.image_build import handle

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
]
START = {
    "projectName": "Project-0A1B",
    "idempotencyToken": IDENTIFIERS["RequestId"],
    "environmentVariablesOverride": VARIABLES,
}


def watching(**fields: Any) -> dict[str, Any]:
    """The function's own call, once the build was started."""
    return {**request("Create"), "BuildId": BUILD, **fields}


def build(status: str, **fields: Any) -> dict[str, Any]:
    return {"builds": [{"id": BUILD, "buildStatus": status, **fields}]}


class Account:
    """CodeBuild's real client with its answers given, and the answers that CloudFormation gets."""

    def __init__(self) -> None:
        keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
        self.clients: dict[str, Any] = {
            name: boto3.client(name, region_name="eu-west-1", **keys)  # type: ignore[call-overload]
            for name in ("codebuild", "lambda")
        }
        self.stubber = Stubber(self.clients["codebuild"])
        self.calls = Stubber(self.clients["lambda"])
        self.answers: list[tuple[str, dict[str, str]]] = []
        self.waited_seconds = 0.0

    def expect_call(self, event: dict[str, Any]) -> None:
        """The function is to call itself with the event and the build."""
        self.calls.add_response(
            "invoke",
            {"StatusCode": 202},
            {
                "FunctionName": event["ResourceProperties"]["ServiceToken"],
                "InvocationType": "Event",
                "Payload": json.dumps({**event, "BuildId": BUILD}),
            },
        )

    def handle(self, event: dict[str, Any]) -> None:
        def wait(seconds: float) -> None:
            self.waited_seconds += seconds

        with self.stubber, self.calls:
            handle(
                event, self.clients.__getitem__, lambda *answer: self.answers.append(answer), wait
            )
        self.stubber.assert_no_pending_responses()
        self.calls.assert_no_pending_responses()


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
    account.expect_call(event)
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
    for found in (build("IN_PROGRESS"), build(status, logs={"deepLink": LOG})):
        account.stubber.add_response("batch_get_builds", found, {"ids": [BUILD]})
    account.handle(watching())
    reason = f"The build of {URI} ended as {status}. Its log: {LOG}"
    assert account.answers == [(URL, {**IDENTIFIERS, "Status": answered, "Reason": reason})]
    assert account.waited_seconds == 15


def test_a_build_that_outlasts_a_call_is_watched_by_the_next(account: Account):
    for _ in range(50):
        account.stubber.add_response("batch_get_builds", build("IN_PROGRESS"), {"ids": [BUILD]})
    account.expect_call(watching())
    account.handle(watching())
    assert account.answers == []
    assert account.waited_seconds == 750


def test_a_build_without_a_log_is_told_as_well(account: Account):
    account.stubber.add_response("batch_get_builds", build("TIMED_OUT"), {"ids": [BUILD]})
    account.handle(watching())
    assert account.answers[0][1]["Reason"].endswith("TIMED_OUT. Its log: none was written")


def test_a_build_that_may_not_be_looked_at_is_answered(account: Account):
    account.stubber.add_client_error("batch_get_builds", "AccessDeniedException", "no")
    account.handle(watching())
    assert account.answers[0][1]["Status"] == "FAILED"
    assert "cannot be looked at" in account.answers[0][1]["Reason"]


def test_a_call_that_is_denied_is_left_to_lambda_to_try_again(account: Account):
    account.stubber.add_response("start_build", {"build": {"id": BUILD}}, START)
    account.calls.add_client_error("invoke", "AccessDeniedException", "not yet")
    with pytest.raises(ClientError, match="not yet"):
        account.handle(request("Create"))
    assert account.answers == []


def test_no_variable_of_a_build_has_the_address_of_the_answer():
    assert URL not in json.dumps(START)
    assert [variable["name"] for variable in VARIABLES] == ["IMAGE_URI", "BASE_IMAGE", "TARGET"]
