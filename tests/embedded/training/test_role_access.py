"""A training job reads and writes as its role."""

from typing import Any

import pytest

from tests.embedded.hosting.conftest import Role, refused
from tests.embedded.training.conftest import Account

BUCKET = "arn:aws:s3:::training"
READ = {"Effect": "Allow", "Action": "s3:GetObject", "Resource": f"{BUCKET}/weights/*"}
LIST = {
    "Effect": "Allow",
    "Action": "s3:ListBucket",
    "Resource": BUCKET,
    "Condition": {"StringLike": {"s3:prefix": "weights/*"}},
}
WRITE = {"Effect": "Allow", "Action": "s3:PutObject", "Resource": f"{BUCKET}/compile/*"}


def allowed(account: Account, *statements: dict[str, Any]) -> str:
    role = Role(account)
    role.allow(*statements)
    return role.arn


def test_a_role_with_its_own_prefixes_does_the_job(account):
    found = account.done(RoleArn=allowed(account, READ, LIST, WRITE))
    assert found["TrainingJobStatus"] == "Completed"
    message = refused(account.start, RoleArn=allowed(account, READ, WRITE))
    assert message.startswith("No S3 objects found under S3 URL")


@pytest.mark.parametrize(
    ("statements", "reason"),
    [((LIST, WRITE), "Data download failed"), ((LIST, READ), "Artifact upload failed")],
)
def test_a_job_fails_where_its_role_may_not_read_or_write(account, statements, reason):
    found = account.done(RoleArn=allowed(account, *statements))
    assert found["TrainingJobStatus"] == "Failed"
    assert f"ClientError: {reason}: An error occurred (AccessDenied)" in found["FailureReason"]
