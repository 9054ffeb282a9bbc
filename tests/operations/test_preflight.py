"""What an account lacks before a deploy."""

import dataclasses
from typing import Any

import pytest

from slipway.access import Access
from slipway.errors import UserError
from slipway.operations.preflight import notes, preflight
from slipway.operations.preflight.findings import parted
from slipway.operations.preflight.places import examine_volume_key, find_capture_bucket
from slipway.planning.plan import DeploymentPlan
from slipway.publishing.store import SEAL
from slipway.publishing.stored import listed, seal
from tests.support.buckets import remove_buckets
from tests.support.images import put_image
from tests.support.plans import with_config, with_environment
from tests.support.projects import DIGEST, LOCAL

KEY = "arn:aws:kms:us-east-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"


FILES = {"a.bin": b"abc", "b.bin": b"defg"}


def lay_artifact(access: Access, prefix: str, **options: str) -> None:
    """Puts an artifact into the bucket, with its seal. No body of a manifest has this digest."""
    s3, bucket = access.client("s3"), LOCAL.artifact_bucket
    for name, body in FILES.items():
        s3.put_object(Bucket=bucket, Key=f"{prefix}files/{name}", Body=body)
    metadata = {SEAL: seal(listed(s3, bucket, f"{prefix}files/"))}
    key = f"{prefix}manifest.json"
    s3.put_object(Bucket=bucket, Key=key, Body=b"", Metadata=metadata, **options)


def missing(
    plan: DeploymentPlan, access: Access, begin: str = "", **options: Any
) -> list[tuple[str, str]]:
    """Returns the messages that begin so, with their remedies."""
    with pytest.raises(UserError) as caught:
        preflight(plan, access, **options)
    problems = caught.value.problems
    return [(each.message, each.remedy) for each in problems if each.message.startswith(begin)]


def with_image(plan: DeploymentPlan, repository: str, tag: str) -> DeploymentPlan:
    image = dataclasses.replace(plan.image, repository=repository, tag=tag)
    return with_environment(dataclasses.replace(plan, image=image), name="production")


def put_parameters(access: Access, environment: str) -> None:
    for name in ("artifact-key-arn", "notification-topic-arn"):
        access.client("ssm").put_parameter(
            Name=f"/slipway/{environment}/{name}", Value="x", Type="String"
        )


def test_an_artifact_is_as_it_was_published_or_is_refused(plan, access):
    s3, bucket = access.client("s3"), LOCAL.artifact_bucket
    s3.create_bucket(Bucket=bucket)
    prefix = f"artifacts/{DIGEST}/"

    def said() -> list[tuple[str, str]]:
        return missing(plan, access, "the artifact ")

    damaged = (
        f"the artifact s3://{bucket}/{prefix}manifest.json is not as it was published: a file was "
        "written or deleted since",
        "Run `slipway publish tiny --env local`: it compares every file, and sends what is missing "
        "or wrong.",
    )
    lay_artifact(access, prefix)
    assert said() == []
    # Of the same size.
    s3.put_object(Bucket=bucket, Key=f"{prefix}files/a.bin", Body=b"xyz")
    assert said() == [damaged]
    s3.put_object(Bucket=bucket, Key=f"{prefix}files/a.bin", Body=FILES["a.bin"])
    assert said() == []
    s3.delete_object(Bucket=bucket, Key=f"{prefix}files/a.bin")
    assert said() == [damaged]
    lay_artifact(access, prefix)
    s3.put_object(Bucket=bucket, Key=f"{prefix}files/stray", Body=b"")
    assert said() == [damaged]


def test_weights_beside_the_model_data_are_looked_for_too(plan, access):
    access.client("s3").create_bucket(Bucket=LOCAL.artifact_bucket)
    lay_artifact(access, f"artifacts/{DIGEST}/")
    weights = dataclasses.replace(plan.artifact, digest="c" * 64)
    assert missing(dataclasses.replace(plan, weights=weights), access)[-1][0] == (
        f"the artifact s3://{LOCAL.artifact_bucket}/artifacts/{'c' * 64}/manifest.json is not there"
    )


def test_an_empty_account_lacks_everything_each_with_its_command(plan, access):
    foundation = "Run `cdk deploy foundation -c env=local`."
    assert missing(plan, access) == [
        ("the SSM parameter /slipway/local/artifact-key-arn is not there", foundation),
        ("the SSM parameter /slipway/local/notification-topic-arn is not there", foundation),
        (
            f"the artifact s3://{LOCAL.artifact_bucket}/artifacts/{DIGEST}/manifest.json is not "
            "there",
            "Run `slipway publish tiny --env local`.",
        ),
    ]


def test_a_prepared_account_passes(plan, access):
    put_parameters(access, "local")
    s3 = access.client("s3")
    s3.create_bucket(Bucket=LOCAL.artifact_bucket)
    lay_artifact(access, f"artifacts/{DIGEST}/")
    assert preflight(plan, access) == [
        "SSM parameter /slipway/local/artifact-key-arn",
        "SSM parameter /slipway/local/notification-topic-arn",
        f"artifact {DIGEST}",
        "quota 'ml.g4dn.xlarge for endpoint usage' of 1000 for 2",
    ]
    remove_buckets(s3)
    for name in ("artifact-key-arn", "notification-topic-arn"):
        access.client("ssm").delete_parameter(Name=f"/slipway/local/{name}")


@pytest.mark.parametrize(
    ("repository", "checked"),
    [("slipway/lmi", True), ("slipway/tensorrt", True), ("djl-inference", False)],
)
def test_an_image_of_ours_has_to_be_built(plan, access, repository: str, checked: bool):
    plan = with_image(plan, repository, "1-0123456789abcdef")
    family = repository.rpartition("/")[2]
    told = (
        f"the image {plan.image.uri} is not there",
        f"Run `cdk deploy image-{family} -c env=production`; it builds it.",
    )
    ecr = access.client("ecr")
    assert (told in missing(plan, access)) is checked
    ecr.create_repository(repositoryName=repository)
    assert (told in missing(plan, access)) is checked
    put_image(ecr, repository, plan.image.tag)
    assert told not in missing(plan, access)


def test_an_image_that_is_built_is_named(plan, access):
    plan = with_image(plan, "slipway/lmi", "2-0123456789abcdef")
    put_parameters(access, "production")
    access.client("s3").create_bucket(Bucket=LOCAL.artifact_bucket)
    lay_artifact(access, f"artifacts/{DIGEST}/")
    put_image(access.client("ecr"), "slipway/lmi", plan.image.tag)
    assert f"image slipway/lmi:{plan.image.tag}" in preflight(plan, access)


def test_a_repository_that_exists_keeps_its_key(plan, access):
    plan = with_image(plan, "slipway/lmi", "3-0123456789abcdef")
    ecr = access.client("ecr")

    def said(wanted: str | None) -> list[tuple[str, str]]:
        return missing(plan, access, "the repository ", repository_key=wanted)

    assert said("artifact") == []
    ecr.create_repository(repositoryName="slipway/lmi")
    # Without the foundation nobody knows the artifact key, and that it is missing is said anyway.
    assert said("artifact") == []
    access.client("ssm").put_parameter(
        Name="/slipway/production/artifact-key-arn", Value=KEY, Type="String"
    )
    for wanted in ("artifact", KEY):
        assert said(wanted) == [
            (
                "the repository slipway/lmi is encrypted with a key of ECR, and environments.yaml "
                f"asks for {KEY}",
                "Remove `image_builds.repository_key` of production from environments.yaml: the "
                "encryption of a repository cannot be changed.",
            )
        ]
    assert said(None) == []
    ecr.delete_repository(repositoryName="slipway/lmi")
    encryption = {"encryptionType": "KMS", "kmsKey": KEY}
    ecr.create_repository(repositoryName="slipway/lmi", encryptionConfiguration=encryption)
    assert said("artifact") == said(KEY) == []
    ((message, remedy),) = said(KEY.replace("1234abcd", "5678ef01"))
    assert f"is encrypted with {KEY}, and" in message
    assert remedy.startswith(f"Write `repository_key: {KEY}` for production")


def test_only_a_plan_without_a_project_says_that_owners_are_not_compared(plan):
    assert notes(plan) == [
        "owners are not compared: environments.yaml has no `project`, so the names of another "
        "repository's environment local in this account would be the same"
    ]
    assert notes(with_environment(plan, project="search")) == []


def test_parameters_are_looked_for_under_the_project(plan, access):
    message, _ = missing(with_environment(plan, project="search"), access)[0]
    assert message == "the SSM parameter /slipway/search/local/artifact-key-arn is not there"


def test_an_isolated_model_needs_its_own_key_and_what_it_encrypted(plan, access):
    isolated = plan.config.artifacts.model_copy(update={"isolated": True})
    plan = with_config(plan, artifacts=isolated)
    first, second = (access.client("kms").create_key()["KeyMetadata"]["Arn"] for _ in range(2))
    parameter = {"Name": "/slipway/local/models/tiny/artifact-key-arn", "Type": "String"}
    access.client("ssm").put_parameter(
        Name="/slipway/local/notification-topic-arn", Value="x", Type="String"
    )
    access.client("s3").create_bucket(Bucket=LOCAL.artifact_bucket)
    manifest = f"models/tiny/artifacts/{DIGEST}/manifest.json"
    assert missing(plan, access) == [
        (
            "the SSM parameter /slipway/local/models/tiny/artifact-key-arn is not there",
            "Run `cdk deploy artifacts-tiny -c env=local`.",
        ),
        (
            f"the artifact s3://{LOCAL.artifact_bucket}/{manifest} is not there",
            "Run `slipway publish tiny --env local`.",
        ),
    ]
    access.client("ssm").put_parameter(**parameter, Value=first)
    encryption = {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": first}
    lay_artifact(access, f"models/tiny/artifacts/{DIGEST}/", **encryption)
    assert preflight(plan, access)[0] == f"SSM parameter {parameter['Name']}"
    access.client("ssm").put_parameter(**parameter, Value=second, Overwrite=True)
    ((message, _),) = missing(plan, access)
    assert message.endswith(f"is encrypted with {first}, and the key of the model is now {second}")


def test_what_the_embedded_aws_cannot_serve_is_named_first(plan, access):
    with pytest.raises(UserError) as caught:
        preflight(plan, access, why_not_served="No program stands for it.")
    assert caught.value.problems[0].code == "SW518"
    assert caught.value.problems[0].message == "No program stands for it"


def examined(key: str, access: Access) -> str | tuple[str, str]:
    lines, problems = parted([examine_volume_key(key, access)])
    return lines[0] if lines else (problems[0].message, problems[0].remedy)


def test_a_key_is_there_enabled_and_symmetric(access: Access) -> None:
    kms = access.client("kms")
    key = kms.create_key()["KeyMetadata"]["Arn"]
    assert examined(key, access) == f"volume key {key}"
    kms.disable_key(KeyId=key.rpartition("/")[2])
    assert examined(key, access) == (
        f"the key {key} is in state Disabled",
        "Enable the key, or name another one in `volume_key_arn`.",
    )
    missing = "arn:aws:kms:us-east-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
    assert examined(missing, access) == (
        f"the key {missing} does not exist",
        "Correct `volume_key_arn`.",
    )
    pair = kms.create_key(KeySpec="RSA_2048", KeyUsage="ENCRYPT_DECRYPT")["KeyMetadata"]["Arn"]
    assert examined(pair, access) == (
        f"the key {pair} is of kind RSA_2048, and volumes take symmetric keys",
        "Name a symmetric key in `volume_key_arn`.",
    )


def test_a_bucket_of_captured_data_is_there(access: Access) -> None:
    _, (missing,) = parted([find_capture_bucket("no-such-capture", access)])
    assert (missing.message, missing.remedy) == (
        "the bucket no-such-capture, for captured data, does not exist",
        "Correct `data_capture.destination`, or make the bucket.",
    )
    access.client("s3").create_bucket(Bucket="such-a-capture")
    assert find_capture_bucket("such-a-capture", access) == "bucket such-a-capture"
