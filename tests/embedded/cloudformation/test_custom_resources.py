"""Functions from packages in S3, and the custom resources that they answer for."""

import io
import zipfile
from typing import Any

import pytest

from tests.embedded.cloudformation.templates import (
    get_att,
    policy,
    read_policy,
    resource,
    template,
)

PROGRAM = """
def handle(event, client, answer, wait):
    properties = event["ResourceProperties"]
    print(event["RequestType"], properties["Number"], properties["Flag"])
    if properties["Number"] == "13":
        raise ValueError("no luck")
    name = properties.get("Queue")
    if name:
        client("sqs").create_queue(QueueName=name)
    answer(event["ResponseURL"], {
        "Status": "FAILED" if properties["Number"] == "7" else "SUCCESS",
        "Reason": f"from {event.get('OldResourceProperties', {}).get('Number')}",
        "PhysicalResourceId": event.get("PhysicalResourceId", "thing-1"),
        "RequestId": event["RequestId"],
        "Data": {"Double": str(2 * int(properties["Number"]))},
    })
"""
TRUST = policy(Principal={"Service": "lambda.amazonaws.com"}, Action="sts:AssumeRole")


@pytest.fixture(scope="module", autouse=True)
def package(stacks) -> None:
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w") as archive:
        archive.writestr("handler.py", PROGRAM)
        archive.writestr("empty.py", "")
    stacks.make_bucket("packages")
    stacks.client("s3").put_object(Bucket="packages", Key="one.zip", Body=body.getvalue())


def body(
    number: int, *, trust: Any = TRUST, handler: str = "handler", key: str = "one.zip", **more: Any
) -> dict[str, Any]:
    return template(
        {"Double": get_att("Thing", "Double")},
        Log=resource("AWS::Logs::LogGroup"),
        Role=resource(
            "AWS::IAM::Role",
            AssumeRolePolicyDocument=trust,
            Policies=[{"PolicyName": "p", "PolicyDocument": read_policy("s3:*")}],
        ),
        Function=resource(
            "AWS::Lambda::Function",
            Code={"S3Bucket": "packages", "S3Key": key},
            Handler=f"{handler}.handler",
            Role=get_att("Role", "Arn"),
            Runtime="python3.14",
            LoggingConfig={"LogGroup": {"Ref": "Log"}},
        ),
        Thing=resource(
            "Custom::SlipwayScaling",
            ServiceToken=get_att("Function", "Arn"),
            Number=number,
            Flag=True,
            **more,
        ),
    )


def test_the_function_makes_changes_and_deletes(stacks):
    assert stacks.create("custom", body(1)) == "CREATE_COMPLETE"
    assert stacks.physical_id("custom", "Thing") == "thing-1"
    assert stacks.outputs("custom") == {"Double": "2"}
    group = stacks.physical_id("custom", "Log")
    assert stacks.update("custom", body(2)) == "UPDATE_COMPLETE"
    assert stacks.outputs("custom") == {"Double": "4"}
    assert stacks.update("custom", body(7)) == "UPDATE_ROLLBACK_COMPLETE"
    assert stacks.reason("custom", "Thing", "UPDATE_FAILED").startswith(
        "Received response status [FAILED] from custom resource. Message returned: from 2 "
    )
    assert stacks.update("custom", body(13)) == "UPDATE_ROLLBACK_COMPLETE"
    reason = stacks.reason("custom", "Thing", "UPDATE_FAILED")
    assert reason.startswith("CloudFormation did not receive a response")
    assert reason.endswith("(no luck)")
    logs = stacks.client("logs")
    lines = [event["message"] for event in logs.filter_log_events(logGroupName=group)["events"]]
    assert sorted(lines) == sorted(
        ["Create 1 true", "Update 2 true", "Update 7 true", "Update 2 true", "Update 13 true",
         "[ERROR] ValueError: no luck", "Update 2 true"]
    )  # fmt: skip
    assert stacks.delete("custom") == "DELETE_COMPLETE"


@pytest.mark.parametrize(
    ("changes", "logical_id", "said"),
    [
        ({"trust": policy()}, "Function", "for the function cannot be assumed by Lambda."),
        ({"key": "two.zip"}, "Function", "while GetObject. S3 Error Code: NoSuchKey"),
        ({"handler": "absent"}, "Function", "Unable to import module 'absent'"),
        ({"handler": "empty"}, "Function", "empty.py has none"),
        (
            {"Queue": "q"},
            "Thing",
            "is not authorized to perform: sqs:CreateQueue because no identity-based policy allows "
            "the sqs:CreateQueue action",
        ),
    ],
    ids=["role", "package", "module", "no handle", "permission"],
)
def test_what_cannot_run_fails_with_its_reason(stacks, changes, logical_id, said):
    assert stacks.create("wrong", body(1, **changes)) == "ROLLBACK_COMPLETE"
    assert said in stacks.reason("wrong", logical_id, "CREATE_FAILED")
    assert stacks.delete("wrong") == "DELETE_COMPLETE"
