"""A model becomes isolated, and shared again, while its fleet serves."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from slipway.planning.artifact_place import ArtifactPlace, own_place, shared_place
from tests.support.projects import DIGEST, LOCAL
from tests.support.slipway_stack import SlipwayStack, golden_template
from tests.support.waiting import eventually

pytestmark = pytest.mark.size("all")

MODEL = "isolated"
NAME = f"{MODEL}-local"
OWN, SHARED = own_place(MODEL, LOCAL), shared_place(LOCAL)


class Moving:
    """A model that is deployed from one place and from the other."""

    def __init__(self, stack: SlipwayStack) -> None:
        self.stack = stack
        self.stacks = stack.stacks
        template = golden_template(f"artifacts-{MODEL}")
        assert self.stacks.create(f"artifacts-{NAME}", template) == "CREATE_COMPLETE"
        found = self.stacks.client("ssm").get_parameter(Name=OWN.key_parameter)
        self.key: str = found["Parameter"]["Value"]

    def template(self, place: ArtifactPlace, mode: str) -> dict[str, Any]:
        """The golden template of the model at a place, on weights that behave so."""
        # But for its name, this is the model before it is isolated.
        text = golden_template("fixed-count").replace("fixed-count", MODEL)
        if place.is_isolated:
            text = golden_template(MODEL)
        digest = mode.encode().hex().ljust(64, "0")
        encryption = {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": self.key}
        self.stacks.client("s3").put_object(
            Bucket=place.bucket,
            Key=f"{place.files_prefix(digest)}mode",
            Body=mode.encode(),
            **(encryption if place.is_isolated else {}),
        )
        return self.stack.deployable(text, mode)

    def role(self) -> str:
        """ARN of the role with which the live endpoint's model runs."""
        sagemaker = self.stacks.client("sagemaker")
        endpoint = sagemaker.describe_endpoint(EndpointName=NAME)
        config = sagemaker.describe_endpoint_config(
            EndpointConfigName=endpoint["EndpointConfigName"]
        )
        model = sagemaker.describe_model(ModelName=config["ProductionVariants"][0]["ModelName"])
        arn: str = model["ExecutionRoleArn"]
        return arn

    def move(self, place: ArtifactPlace, mode: str = "ok") -> str:
        """Deploys the model at a place; returns the stack's status."""
        return self.stacks.update(NAME, self.template(place, mode))

    def be_at(self, place: ArtifactPlace) -> None:
        """Moves the model to a place, unless it is there."""
        if ("OwnExecutionRole" in self.role()) != place.is_isolated:
            assert self.move(place) == "UPDATE_COMPLETE"

    def exists(self, role_arn: str) -> bool:
        iam = self.stacks.client("iam")
        try:
            iam.get_role(RoleName=role_arn.rpartition("/")[2])
        except iam.exceptions.NoSuchEntityException:
            return False
        return True

    def starts_anew(self, name: str) -> bool:
        """Whether an instance that the live configuration starts now gets its weights."""
        sagemaker = self.stacks.client("sagemaker")
        config = sagemaker.describe_endpoint(EndpointName=NAME)["EndpointConfigName"]
        sagemaker.create_endpoint(EndpointName=name, EndpointConfigName=config)

        def settled() -> str | None:
            status = sagemaker.describe_endpoint(EndpointName=name)["EndpointStatus"]
            return None if status == "Creating" else str(status)

        ended = eventually(settled)
        sagemaker.delete_endpoint(EndpointName=name)
        return ended == "InService"


@pytest.fixture(scope="module")
def moving(stack: SlipwayStack) -> Moving:
    found = Moving(stack)
    assert found.stacks.create(NAME, found.template(SHARED, "ok")) == "CREATE_COMPLETE"
    return found


def execution_role(template: dict[str, Any]) -> str:
    """The logical id of a template's execution role."""
    (found,) = (name for name in template["Resources"] if "ExecutionRole" in name)
    return str(found)


@pytest.mark.parametrize(("before", "after"), [(SHARED, OWN), (OWN, SHARED)])
def test_the_old_role_is_untouched_until_the_endpoint_has_moved(
    moving: Moving, before: ArtifactPlace, after: ArtifactPlace
) -> None:
    moving.be_at(before)
    old, template = moving.role(), moving.template(after, "ok")
    assert moving.stacks.update(NAME, template) == "UPDATE_COMPLETE"
    (endpoint,) = (name for name in template["Resources"] if name.startswith("HostingEndpoint"))
    history = moving.stacks.history(NAME, "UPDATE_IN_PROGRESS")
    about_old = [
        line for line in history
        if "ExecutionRole" in line and not line.startswith(f"{execution_role(template)} ")
    ]  # fmt: skip
    assert [line.partition(" ")[2] for line in about_old] == [
        "DELETE_IN_PROGRESS", "DELETE_COMPLETE",
    ]  # fmt: skip
    assert history.index(about_old[0]) > history.index(f"{endpoint} UPDATE_COMPLETE")
    assert moving.role() != old
    assert not moving.exists(old)
    assert moving.starts_anew(f"moved-to-{after.stack_id}")


@pytest.mark.parametrize(("before", "after"), [(SHARED, OWN), (OWN, SHARED)])
def test_a_move_that_fails_ends_where_it_began(
    moving: Moving, before: ArtifactPlace, after: ArtifactPlace
) -> None:
    moving.be_at(before)
    old = moving.role()
    assert moving.move(after, "dead") == "UPDATE_ROLLBACK_COMPLETE"
    assert moving.role() == old
    assert moving.exists(old)
    assert moving.starts_anew(f"still-at-{before.stack_id}")


def test_its_role_is_refused_for_every_other_prefix(moving: Moving) -> None:
    moving.be_at(OWN)
    for place in (SHARED, own_place("isolated-too", LOCAL)):
        moving.stacks.client("s3").put_object(
            Bucket=place.bucket, Key=f"{place.files_prefix(DIGEST)}mode", Body=b"ok"
        )
        with pytest.raises(ClientError) as caught:
            moving.stacks.client("sagemaker").create_model(
                ModelName="thief",
                ExecutionRoleArn=moving.role(),
                PrimaryContainer={
                    "Image": "123456789012.dkr.ecr.us-east-1.amazonaws.com/slipway/tensorrt:1",
                    "ModelDataSource": {
                        "S3DataSource": {
                            "S3Uri": place.files_uri(DIGEST),
                            "S3DataType": "S3Prefix",
                            "CompressionType": "None",
                        }
                    },
                },
            )
        assert caught.value.response["Error"]["Message"].startswith(
            f"Could not access model data at {place.files_uri(DIGEST)}."
        )
