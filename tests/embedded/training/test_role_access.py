"""A training job reads and writes as its role."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.support.roles import make_role

BUCKET = "arn:aws:s3:::training"
READ = {"Effect": "Allow", "Action": "s3:GetObject", "Resource": f"{BUCKET}/weights/*"}
LIST = {
    "Effect": "Allow",
    "Action": "s3:ListBucket",
    "Resource": BUCKET,
    "Condition": {"StringLike": {"s3:prefix": "weights/*"}},
}
WRITE = {"Effect": "Allow", "Action": "s3:PutObject", "Resource": f"{BUCKET}/compile/*"}


def role_for(account: Any, name: str, *statements: dict[str, Any]) -> str:
    policy = {"Version": "2012-10-17", "Statement": list(statements)}
    return make_role(account.client("iam"), name, policy)


def test_a_role_with_its_own_prefixes_does_the_job(account):
    role = role_for(account, "both", READ, LIST, WRITE)
    assert account.done(RoleArn=role)["TrainingJobStatus"] == "Completed"


def test_a_role_that_may_not_list_its_input_is_refused(account):
    role = role_for(account, "no-list", READ, WRITE)
    with pytest.raises(ClientError) as caught:
        account.start(RoleArn=role)
    assert caught.value.response["Error"]["Message"].startswith("No S3 objects found under S3 URL")


@pytest.mark.parametrize(
    ("name", "statements", "reason"),
    [
        ("no-read", (LIST, WRITE), "Data download failed"),
        ("no-write", (LIST, READ), "Artifact upload failed"),
    ],
)
def test_a_job_fails_where_its_role_may_not_read_or_write(account, name, statements, reason):
    role = role_for(account, name, *statements)
    found = account.done(RoleArn=role)
    assert found["TrainingJobStatus"] == "Failed"
    assert f"ClientError: {reason}: An error occurred (AccessDenied)" in found["FailureReason"]
