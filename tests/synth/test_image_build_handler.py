"""The function between CloudFormation and CodeBuild, on its own."""

from __future__ import annotations

import json
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from stacks.functions.image_build import handle

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
            handle(
                event,
                {"codebuild": self.codebuild}.__getitem__,
                lambda *answer: self.answers.append(answer),
                lambda _: None,
            )
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
