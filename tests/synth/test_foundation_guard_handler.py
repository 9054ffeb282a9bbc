"""The function that refuses a deployment over another project's foundation, or a newer one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from botocore.exceptions import ClientError

from slipway.stacks.functions.foundation_guard import handle

KEY = "arn:aws:kms:eu-west-1:123456789012:key/one"
PROPERTIES = {"Project": "search", "Version": "3", "ArtifactBucket": "b", "ArtifactKeyArn": ""}
NOTHING = "Nothing stands in the way."


class Account:
    """CloudFormation and S3 as far as the function asks them."""

    def __init__(self, status: str, key: str | None, error: str) -> None:
        self._status, self._key, self._error = status, key, error

    def __call__(self, service: str) -> Account:
        assert service in ("cloudformation", "s3")
        return self

    def describe_stacks(self, *, StackName: str) -> dict[str, Any]:  # noqa: N803  # boto3's
        assert StackName == "stack"
        return {"Stacks": [{"StackStatus": self._status}]}

    def get_bucket_encryption(self, *, Bucket: str) -> dict[str, Any]:  # noqa: N803  # boto3's
        assert Bucket == "b"
        if self._key is None:
            raise ClientError({"Error": {"Code": self._error, "Message": "no"}}, "x")
        rule = {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": self._key}
        rules = [{"ApplyServerSideEncryptionByDefault": rule}]
        return {"ServerSideEncryptionConfiguration": {"Rules": rules}}


def ask(
    kind: str,
    status: str,
    *,
    key: str | None = None,
    error: str = "NoSuchBucket",
    old: Mapping[str, str] | None = None,
    **properties: str,
) -> tuple[str, str]:
    answers: list[tuple[str, dict[str, str]]] = []
    event = {
        "RequestType": kind,
        "ResponseURL": "https://answer",
        "StackId": "stack",
        "RequestId": "request",
        "LogicalResourceId": "Guard",
        "ResourceProperties": {**PROPERTIES, **properties},
        **({"OldResourceProperties": {**PROPERTIES, **old}} if old is not None else {}),
        **({} if kind == "Create" else {"PhysicalResourceId": "foundation-guard"}),
    }
    account = Account(status, key, error)
    handle(event, account, lambda *it: answers.append(it), lambda _: None)
    ((url, answer),) = answers
    assert url == "https://answer"
    assert answer["PhysicalResourceId"] == "foundation-guard"
    assert (answer["StackId"], answer["RequestId"]) == ("stack", "request")
    return answer["Status"], answer["Reason"]


def test_a_new_foundation_and_a_newer_version_are_let_through():
    assert ask("Create", "CREATE_IN_PROGRESS") == ("SUCCESS", NOTHING)
    assert ask("Update", "UPDATE_IN_PROGRESS", old={"Version": "2"}) == ("SUCCESS", NOTHING)
    # The tenth is newer than the ninth.
    assert ask("Update", "UPDATE_IN_PROGRESS", old={"Version": "9"}, Version="10")[0] == "SUCCESS"


def test_an_older_version_is_refused_and_its_rollback_is_not():
    assert ask("Update", "UPDATE_IN_PROGRESS", old={"Version": "4"}) == (
        "FAILED",
        "Version 4 of the foundation is deployed, and this is version 3. Nothing was changed. "
        "Bring the working copy up to date, or deploy a model alone with "
        "`cdk deploy NAME --exclusively`.",
    )
    for status in ("UPDATE_ROLLBACK_IN_PROGRESS", "UPDATE_ROLLBACK_FAILED"):
        assert ask("Update", status, old={"Version": "4"}) == ("SUCCESS", NOTHING)


@pytest.mark.parametrize(("project", "said"), [("ads", "ads"), ("", "no project")])
def test_another_owner_is_refused(project, said):
    assert ask("Update", "UPDATE_IN_PROGRESS", old={}, Project=project) == (
        "FAILED",
        f"This foundation belongs to the project search, and {said} is deployed over it. Nothing "
        "was changed. Give this repository a `project` of its own in environments.yaml.",
    )


def test_owners_are_not_compared_where_the_foundation_has_none():
    assert ask("Update", "UPDATE_IN_PROGRESS", old={"Project": ""})[0] == "SUCCESS"


def test_a_new_key_for_an_old_bucket_is_refused():
    assert ask("Create", "CREATE_IN_PROGRESS", key=KEY) == (
        "FAILED",
        "The bucket b of an earlier foundation exists, and its artifacts are encrypted with "
        f"{KEY}. Nothing was changed. Add `artifact_key_arn: {KEY}` to the environment in "
        "environments.yaml, and deploy with `--import-existing-resources`.",
    )
    assert ask("Create", "CREATE_IN_PROGRESS", key=KEY, ArtifactKeyArn=KEY)[0] == "SUCCESS"
    other = KEY.replace("one", "two")
    assert ask("Create", "CREATE_IN_PROGRESS", key=KEY, ArtifactKeyArn=other)[0] == "FAILED"


def test_a_foundation_that_is_older_than_the_guard_has_its_bucket_already():
    assert ask("Create", "UPDATE_IN_PROGRESS", key=KEY) == ("SUCCESS", NOTHING)


def test_what_cannot_be_looked_at_is_not_taken_for_absent():
    status, reason = ask("Create", "CREATE_IN_PROGRESS", error="AccessDenied")
    assert status == "FAILED"
    assert "AccessDenied" in reason


def test_deletion_asks_nobody():
    assert ask("Delete", "never asked") == ("SUCCESS", NOTHING)
