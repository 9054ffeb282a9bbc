"""The captured requests and answers of an endpoint: how many, and where they lie."""

from dataclasses import dataclass
from typing import Literal

from slipway.config.environments import Environment
from slipway.config.schema import ModelConfig
from slipway.config.sections.keys import ARTIFACT_KEY

# In the artifact bucket. SageMaker makes a folder there for each endpoint.
CAPTURED_PREFIX = "captured/"


@dataclass(frozen=True)
class CapturePlan:
    """The part of the traffic that SageMaker writes to S3.

    Args:
        bucket: where it is written.
        prefix: key prefix with its final slash, or empty.
        sampling_percent: share of the requests.
        what: `input`, `output` or both.
        key: ARN of the key, or `artifact` for the key of the model's artifacts; None for the
            bucket's own encryption.
    """

    bucket: str
    prefix: str
    sampling_percent: int
    what: tuple[Literal["input", "output"], ...]
    key: str | None

    @property
    def uri(self) -> str:
        """Returns the address that SageMaker appends `/ENDPOINT/VARIANT/...` to."""
        return f"s3://{self.bucket}/{self.prefix}".rstrip("/")


def capture_plan(config: ModelConfig, environment: Environment) -> CapturePlan | None:
    """Returns the data capture of an endpoint; None without data capture.

    Args:
        config: a valid config.
        environment: has the artifact bucket.
    """
    capture = config.endpoint.data_capture
    if capture is None:
        return None
    if capture.destination is None:
        bucket, prefix, key = environment.artifact_bucket, CAPTURED_PREFIX, ARTIFACT_KEY
        return CapturePlan(bucket, prefix, capture.sampling_percent, capture.capture, key)
    bucket, _, prefix = capture.destination.removeprefix("s3://").partition("/")
    return CapturePlan(bucket, prefix, capture.sampling_percent, capture.capture, capture.key_arn)
