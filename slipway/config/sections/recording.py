"""What SageMaker records of an endpoint: requests and answers, core dumps, metrics."""

from typing import Literal

from pydantic import Field

from slipway.config.sections.base import S3Prefix, Section
from slipway.config.sections.keys import KeyArn


class DataCapture(Section):
    """Writes a share of the requests and answers to S3."""

    destination: S3Prefix | None = Field(
        None,
        description="Prefix of another bucket, in which each endpoint has a folder. Without it: "
        "`captured/` in the artifact bucket, which needs the environment's "
        "`captured_data_days`.",
        examples=["s3://my-capture/autocomplete/"],
    )
    key_arn: KeyArn | None = Field(
        None,
        description="KMS key of what is captured, only with `destination`. Without it the "
        "bucket's own encryption applies. In the artifact bucket it is the artifact key.",
        examples=["arn:aws:kms:eu-west-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"],
    )
    sampling_percent: int = Field(
        100, ge=0, le=100, description="Share of the requests that is captured.", examples=[10]
    )
    capture: tuple[Literal["input", "output"], ...] = Field(
        ("input", "output"),
        min_length=1,
        max_length=2,
        strict=False,
        description="Whether requests, answers or both are captured.",
        examples=[["input", "output"]],
    )


class CoreDump(Section):
    """Where SageMaker writes a dump of the container's memory when its process crashes."""

    destination: S3Prefix = Field(
        description="Prefix of the dumps, which hold whatever the process held: requests too.",
        examples=["s3://my-dumps/autocomplete/"],
    )
    key_arn: KeyArn | None = Field(
        None,
        description="KMS key that encrypts the dumps. Without it SageMaker takes the account's "
        "key for S3.",
        examples=["arn:aws:kms:eu-west-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"],
    )


class Metrics(Section):
    """The metrics that SageMaker publishes in CloudWatch. Without it AWS's defaults apply."""

    enhanced: bool = Field(
        False,
        description="Publishes each metric also for each instance, and for each copy with "
        "`mode: scale_to_zero`. CloudWatch bills each of them as a metric of its own.",
        examples=[True],
    )
    publish_frequency_seconds: Literal[10, 30, 60, 120, 180, 240, 300] = Field(
        60,
        description="Interval of the metrics of machines. With `enhanced` it is the interval of "
        "the metrics of requests too, which otherwise stays at 60 seconds.",
        examples=[10],
    )
    detailed_observability: bool = Field(
        True,
        description="Collects OpenTelemetry metrics of GPUs, hosts and the container, which "
        "CloudWatch answers in PromQL. The value is AWS's default.",
        examples=[False],
    )
