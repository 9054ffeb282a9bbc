"""How an account builds container images: where the builds fetch from, and in which network."""

from typing import Annotated

from pydantic import Field

from slipway.config.sections.base import (
    ProjectPath,
    Section,
    SecurityGroupId,
    SubnetId,
    VpcId,
)
from slipway.config.sections.keys import KeyChoice

# No user name or password: environments.yaml is committed, and CodeBuild shows its variables.
_URL_PATTERN = r"^https://[^\s@/?#]+(/[^\s@?#]*)?$"
_Url = Annotated[str, Field(pattern=_URL_PATTERN)]


class BuildVpc(Section):
    """The network that image builds run in. Builds get no public address there."""

    vpc_id: VpcId = Field(description="The VPC of the subnets.", examples=["vpc-0a1b2c3d"])
    subnet_ids: tuple[SubnetId, ...] = Field(
        min_length=1,
        max_length=16,
        strict=False,
        description="Private subnets with a route to the mirrors, and to ECR, S3 and "
        "CloudWatch Logs: a NAT gateway or VPC endpoints.",
        examples=[["subnet-0a1b2c3d"]],
    )
    security_group_ids: tuple[SecurityGroupId, ...] = Field(
        min_length=1,
        max_length=5,
        strict=False,
        description="Security groups. Builds only open outbound connections.",
        examples=[["sg-0a1b2c3d"]],
    )


class ImageBuilds(Section):
    """Where image builds fetch packages and base images from, and the network that they run in."""

    registry: str | None = Field(
        None,
        pattern=r"^[a-z0-9][a-z0-9.-]*(:[0-9]+)?(/[a-z0-9._-]+)*$",
        description="Registry, with a path if it has one, that replaces nvcr.io. It has "
        "NVIDIA's images under the same names. The build logs in to a registry in"
        " ECR. Any other registry must let everyone pull.",
        examples=["mirror.example.com/nvcr"],
    )
    index_url: _Url | None = Field(
        None,
        description="Package index that replaces PyPI, also for builds that publish.",
        examples=["https://mirror.example.com/pypi/simple"],
    )
    python_url: _Url | None = Field(
        None,
        description="Copy of the releases of python-build-standalone that replaces GitHub's.",
        examples=["https://mirror.example.com/python-build-standalone/releases/download"],
    )
    neuron_index_url: _Url | None = Field(
        None,
        description="Package index that replaces https://pip.repos.neuron.amazonaws.com.",
        examples=["https://mirror.example.com/neuron/simple"],
    )
    ca_bundle: ProjectPath | None = Field(
        None,
        description="PEM file in the project with every certificate authority that signed for"
        " the addresses above. Builds trust these in place of the public ones.",
        examples=["certificates/mirror.pem"],
    )
    repository_key: KeyChoice | None = Field(
        None,
        description="KMS key of the images' repositories: `artifact` for the key of the "
        "artifact bucket, or the ARN of another key. Without it ECR uses a key of"
        " its own. Only a new repository takes the key: the key of a repository "
        "cannot be changed.",
        examples=["artifact"],
    )
    vpc: BuildVpc | None = Field(
        None,
        description="Also of builds that publish. Without it CodeBuild's own network.",
    )


# Everything from its public place, in CodeBuild's own network.
PUBLIC_BUILDS = ImageBuilds.model_validate({})
