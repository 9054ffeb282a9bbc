"""Model data is read as the execution role: a role that may not read it makes no model."""

import pytest

from tests.embedded.hosting.conftest import refused

BUCKET = "arn:aws:s3:::artifacts"
READ = {"Effect": "Allow", "Action": "s3:GetObject", "Resource": f"{BUCKET}/model/*"}
LIST = {
    "Effect": "Allow",
    "Action": "s3:ListBucket",
    "Resource": BUCKET,
    "Condition": {"StringLike": {"s3:prefix": "model/*"}},
}


def test_a_role_that_may_list_and_read_its_prefix_serves_it(account, role):
    role.allow(READ, LIST)
    account.endpoint()


@pytest.mark.parametrize(
    "statements",
    [
        [READ],
        [LIST],
        [LIST, READ | {"Resource": f"{BUCKET}/other/*"}],
        [READ, LIST | {"Condition": {"StringLike": {"s3:prefix": "other/*"}}}],
    ],
)
def test_any_other_role_makes_no_model(account, role, statements):
    role.allow(*statements)
    assert refused(account.model) == (
        "Could not access model data at s3://artifacts/model/files/. Please ensure that the role "
        f'"{role.arn}" exists and that its trust relationship policy allows the action '
        '"sts:AssumeRole" for the service principal "sagemaker.amazonaws.com". Also ensure that '
        'the role has "s3:GetObject" permissions and that the object is located in us-east-1. If '
        "your Model uses multiple models or uncompressed models, please ensure that the role has "
        '"s3:ListBucket" permission.'
    )


def test_an_endpoint_fails_where_the_role_may_not_decrypt(account, role):
    kms = account.client("kms")
    keys = [kms.create_key()["KeyMetadata"]["Arn"] for _ in range(2)]
    account.s3.put_object(
        Bucket="artifacts",
        Key="model/encrypted/config.json",
        Body=b"{}",
        ServerSideEncryption="aws:kms",
        SSEKMSKeyId=keys[0],
    )
    model = account.model(**account.source("s3://artifacts/model/encrypted/"))
    decrypt = {"Effect": "Allow", "Action": "kms:Decrypt", "Resource": keys[1]}
    role.allow(READ, LIST, decrypt)
    assert (
        f'{role.denied("kms:Decrypt")} on resource: "{keys[0]}" because no identity-based policy '
        "allows the kms:Decrypt action"
    ) in account.failure(account.variant(model))
    role.allow(READ, LIST, decrypt | {"Resource": keys})
    account.serve(account.variant(model))
