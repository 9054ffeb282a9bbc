"""What an endpoint configuration serves, by the answers of SageMaker."""

from typing import Any

import pytest

from slipway.deployed.served import served_by

DIGEST = "ab" * 32
OURS = f"s3://bucket/artifacts/{DIGEST}/files/"


class SageMaker:
    """The two calls, of a model with one container."""

    def __init__(self, container: dict[str, Any]) -> None:
        self._container = container

    def describe_endpoint_config(self, **_: str) -> dict[str, Any]:
        variant = {"VariantName": "a", "ModelName": "m", "InstanceType": "ml.g5.xlarge"}
        return {"ProductionVariants": [variant]}

    def describe_model(self, **_: str) -> dict[str, Any]:
        return {"PrimaryContainer": {"Image": "image", **self._container}}


def source(uri: str) -> dict[str, Any]:
    return {"ModelDataSource": {"S3DataSource": {"S3Uri": uri}}}


@pytest.mark.parametrize(
    ("container", "artifact"),
    [
        (source(OURS), DIGEST),
        (
            source(f"s3://bucket/models/mine/artifacts/{DIGEST}/files/"),
            f"{DIGEST} in models/mine/",
        ),
        (
            source(f"s3://bucket/other/artifacts/{DIGEST}/files/"),
            f"s3://bucket/other/artifacts/{DIGEST}/files/",
        ),
        (source("s3://other/model/"), "s3://other/model/"),
        ({"ModelDataUrl": "s3://other/model.tar.gz"}, "s3://other/model.tar.gz"),
        # Settings as variables: the weights are all there is.
        ({"Environment": {"HF_MODEL_ID": OURS}}, DIGEST),
        ({**source(OURS), "Environment": {"HF_MODEL_ID": "gpt2"}}, DIGEST),
        ({"Environment": {"OMP_NUM_THREADS": "1"}}, None),
        ({}, None),
    ],
)
def test_the_artifact_is_told_by_its_address(container: dict[str, Any], artifact: str | None):
    served, types, _ = served_by(SageMaker(container), "config")
    assert (served.image, served.artifact) == ("image", artifact)
    assert types == {"a": ("ml.g5.xlarge",)}
