"""What a release deployed stays when the next one is deployed over it.

`releases/VERSION` holds golden templates as that release wrote them. CloudFormation replaces a
resource whose logical id or create-only property changes: an endpoint would be away for minutes,
and a bucket, a key or a repository would be empty.
"""

import json
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest

from tests.support.slipway_stack import MODEL, NAME, SlipwayStack, slipway_stack
from tests.support.upgrades import kept, replaced, with_another_type

HERE = Path(__file__).parent
LOG_GROUP = "AWS::Logs::LogGroup"
# The template of an image stack is compared where one is synthesised: tests/synth.
RELEASED = [
    path
    for path in sorted((HERE / "releases").glob("*/*.json"))
    if not path.stem.startswith("image-")
]


RELEASED_ENDPOINTS = pytest.mark.parametrize(
    "released",
    [path for path in RELEASED if path.stem == MODEL],
    ids=lambda path: path.parent.name,
)


def read(path: Path) -> dict[str, Any]:
    template: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return template


@pytest.mark.parametrize(
    "released", RELEASED, ids=lambda path: path.relative_to(HERE / "releases").as_posix()
)
def test_an_upgrade_replaces_nothing_that_is_kept(released: Path) -> None:
    before = read(released)
    assert kept(before)
    assert replaced(before, read(HERE / "templates" / released.name)) == []


def test_a_replacement_is_found() -> None:
    before, after = (read(HERE / "templates" / "foundation.json") for _ in range(2))
    of_type = {resource["Type"]: name for name, resource in kept(before).items()}
    key, bucket = of_type["AWS::KMS::Key"], of_type["AWS::S3::Bucket"]
    del after["Resources"][key]
    after["Resources"][bucket]["Properties"]["BucketName"] = "another"
    assert set(replaced(before, after)) == {f"{bucket}: BucketName changes", f"{key} is gone"}


@RELEASED_ENDPOINTS
def test_an_upgraded_endpoint_is_the_same_and_answers(released: Path, tmp_path: Path) -> None:
    with slipway_stack(tmp_path, time_scale=0.05) as stack:
        sagemaker = stack.stacks.client("sagemaker")
        before = stack.template("ok", released)
        assert stack.stacks.create(NAME, before) == "CREATE_COMPLETE"
        first = sagemaker.describe_endpoint(EndpointName=NAME)
        # The alarms change as well, because an update without any change is refused.
        after = stack.template("ok", alarm_periods=7)
        assert stack.stacks.update(NAME, after) == "UPDATE_COMPLETE"
        second = sagemaker.describe_endpoint(EndpointName=NAME)
        assert second["CreationTime"] == first["CreationTime"]
        assert second["EndpointStatus"] == "InService"
        assert stack.invoke("x") == "x"
        # Then `log_key: artifact` is set.
        groups = [each for each in after["Resources"].values() if each["Type"] == LOG_GROUP]
        for group in groups:
            group["Properties"]["KmsKeyId"] = {"Ref": "ArtifactKeyArn"}
        assert stack.stacks.update(NAME, after) == "UPDATE_COMPLETE"
        found = stack.stacks.client("logs").describe_log_groups()["logGroups"]
        assert [each["kmsKeyId"] for each in found] == [artifact_key_arn(stack)] * len(groups)
        assert sagemaker.describe_endpoint(EndpointName=NAME) == second | {"ResponseMetadata": ANY}
        assert stack.invoke("x") == "x"


@RELEASED_ENDPOINTS
def test_an_upgrade_may_change_instances_and_goes_back(released: Path, tmp_path: Path) -> None:
    """The released stack may have no function yet that deregisters its targets."""
    with slipway_stack(tmp_path, time_scale=0.005) as stack:
        before = stack.template("ok", released)
        assert stack.stacks.create(NAME, before) == "CREATE_COMPLETE"
        kept = identities(stack)
        broken = with_another_type(stack.template("dead"))
        assert stack.stacks.update(NAME, broken) == "UPDATE_ROLLBACK_COMPLETE"
        assert identities(stack) == kept
        assert stack.stacks.update(NAME, with_another_type(stack.template("ok"))) == (
            "UPDATE_COMPLETE"
        )
        assert identities(stack) == kept
        assert stack.stacks.update(NAME, stack.template("ok")) == "UPDATE_COMPLETE"
        assert stack.stacks.update(NAME, before) == "UPDATE_COMPLETE"
        assert identities(stack) == kept
        assert stack.invoke("x") == "x"


def identities(stack: SlipwayStack) -> list[Any]:
    """What a replacement of the endpoint, its log group or its targets would change."""
    found = stack.stacks.client("application-autoscaling").describe_scalable_targets(
        ServiceNamespace="sagemaker"
    )["ScalableTargets"]
    groups = stack.stacks.client("logs").describe_log_groups(
        logGroupNamePrefix="/aws/sagemaker/Endpoints/"
    )["logGroups"]
    return [
        stack.stacks.client("sagemaker").describe_endpoint(EndpointName=NAME)["CreationTime"],
        [(target["ResourceId"], target["MaxCapacity"]) for target in found],
        [group["creationTime"] for group in groups],
    ]


def artifact_key_arn(stack: SlipwayStack) -> str:
    parameter = stack.stacks.client("ssm").get_parameter(Name="/slipway/local/artifact-key-arn")
    value: str = parameter["Parameter"]["Value"]
    return value
