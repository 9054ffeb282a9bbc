"""How an account publishes models itself, next to S3: `slipway publish NAME --remote`."""

from typing import Annotated, Literal

from pydantic import Field

from slipway.config.sections.base import S3Prefix, Section
from slipway.config.sections.keys import KeyArn

# No user name or password: environments.yaml is committed, and CodeBuild shows its variables.
_URL = r"^https://[^\s@/?#]+(/[^\s@?#]*)?$"
_ARN = r"^arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:[0-9]{12}:secret:[A-Za-z0-9/_+=.@-]+$"


class RemotePublishing(Section):
    """The build project that publishes next to S3. `{}` suits weights of public models."""

    compute: Literal["small", "medium", "large", "2xlarge"] = Field(
        "medium",
        description="CodeBuild's compute type, `BUILD_GENERAL1_...`. Its disk has 64, 128, 128 "
        "or 824 GB. Weights of the Hub must fit on the disk. Weights in S3 need "
        "none.",
        examples=["2xlarge"],
    )
    time_limit_minutes: int = Field(
        480,
        ge=5,
        le=2160,
        description="A build is stopped after this time. It waits while a training job "
        "compiles, so its time counts too.",
        examples=[480],
    )
    weights: tuple[Annotated[S3Prefix, Field(max_length=900)], ...] = Field(
        (),
        strict=False,
        description="Prefixes in S3 that builds may read weights from.",
        examples=[["s3://my-models/"]],
    )
    key_arns: tuple[KeyArn, ...] = Field(
        (),
        strict=False,
        description="KMS keys that encrypt those weights, or the secret, if AWS does not manage "
        "the key.",
        examples=[["arn:aws:kms:eu-west-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"]],
    )
    hub_url: Annotated[str, Field(pattern=_URL)] | None = Field(
        None,
        description="Mirror of the Hugging Face Hub, as `HF_ENDPOINT`.",
        examples=["https://mirror.example.com/hub"],
    )
    hub_token_secret: Annotated[str, Field(pattern=_ARN)] | None = Field(
        None,
        description="Secret in Secrets Manager whose text is the token for the Hub. Only the "
        "build reads it.",
        examples=["arn:aws:secretsmanager:eu-west-1:123456789012:secret:hub-token-AbCdEf"],
    )
