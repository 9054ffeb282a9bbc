"""The captured requests and answers of an endpoint: where they lie."""

from dataclasses import dataclass

from slipway.config.environments import Environment
from slipway.config.schema import ModelConfig
from slipway.config.sections.keys import ARTIFACT_KEY
from slipway.s3_address import S3Address

# In the artifact bucket. SageMaker makes a folder there for each endpoint.
CAPTURED_PREFIX = "captured/"


@dataclass(frozen=True)
class CapturePlace:
    """Where SageMaker writes requests and answers: a key prefix with its final slash, or empty.

    `key` is an ARN, or `artifact` for the key of the model's artifacts; None for the bucket's own
    encryption.
    """

    bucket: str
    prefix: str
    key: str | None

    @property
    def uri(self) -> str:
        """Returns the address that SageMaker appends `/ENDPOINT/VARIANT/...` to."""
        return f"s3://{self.bucket}/{self.prefix}".rstrip("/")


def capture_place(config: ModelConfig, environment: Environment) -> CapturePlace | None:
    """Returns where an endpoint's data capture lies; None without data capture."""
    capture = config.endpoint.data_capture
    if capture is None:
        return None
    if capture.destination is None:
        return CapturePlace(environment.artifact_bucket, CAPTURED_PREFIX, ARTIFACT_KEY)
    return CapturePlace(*S3Address.of(capture.destination), capture.key_arn)
