"""The places of a model's artifacts and captured data in S3, and the keys that encrypt them.

Every URI of an artifact is made here. Otherwise a role might read one place and a publisher write
to another, and only a real account would show it.

Shared artifacts lie under `artifacts/` and are encrypted with the key of the foundation. Every
model's role reads them. The artifacts of an isolated model lie under `models/NAME/artifacts/`. They
are encrypted with a key of the model, which the stack `artifacts-NAME` makes.
"""

from dataclasses import dataclass

from slipway.config.environments import Environment
from slipway.config.schema import ARTIFACTS_PREFIX, ModelConfig
from slipway.config.sections.keys import ARTIFACT_KEY
from slipway.s3_address import S3Address

ARTIFACT_KEY_ARN = "artifact-key-arn"
COMPILE_ROLE_ARN = "compile-role-arn"
"""What the names of the parameters in SSM end with."""

FOUNDATION_ID = "foundation"
SHARED_ARTIFACTS = "artifacts/"
MODEL_ARCHIVE = "model.tar.gz"
"""Name of the only file of an artifact for a serverless endpoint."""
# In the artifact bucket; SageMaker makes a folder there for each job. The foundation lets the job's
# role write there only, and deletes what lies there after a while.
OUTPUT_PREFIX = "compile/"
INCOMING_PREFIX = "incoming/"
"""Begins the keys of what was uploaded and is no part of an artifact yet."""


@dataclass(frozen=True)
class ArtifactPlace:
    """The place of one model's artifacts.

    Args:
        root: what every key begins with: empty, or `models/NAME/` of an isolated model.
        stack_id: id of the stack that makes the key: `foundation`, or `artifacts-NAME`.
        parameter_prefix: what the names of that stack's parameters in SSM begin with.
        key_alias: alias of the key, without `alias/`.
        key_arn: the key, where it existed before that stack; None where the stack makes it.
    """

    bucket: str
    root: str
    stack_id: str
    parameter_prefix: str
    key_alias: str
    key_arn: str | None

    @property
    def is_isolated(self) -> bool:
        """Returns whether no other model's role may read it."""
        return bool(self.root)

    @property
    def artifacts_prefix(self) -> str:
        return f"{self.root}{SHARED_ARTIFACTS}"

    @property
    def recipes_prefix(self) -> str:
        """Returns the key prefix of the records of each artifact's inputs, with the final slash."""
        return f"{self.root}recipes/"

    @property
    def output_prefix(self) -> str:
        """Returns the key prefix of training jobs' output, with the final slash.

        It begins the same everywhere, because one rule of the bucket deletes all of it.
        """
        return f"{OUTPUT_PREFIX}{self.root}"

    @property
    def incoming_prefix(self) -> str:
        """Returns the key prefix of uploaded files, with the final slash.

        It begins the same everywhere too. No place's prefix begins another's.
        """
        return f"{INCOMING_PREFIX}{self.root or 'shared/'}"

    @property
    def key_parameter(self) -> str:
        """Returns the name of the parameter in SSM with the key's ARN."""
        return f"{self.parameter_prefix}{ARTIFACT_KEY_ARN}"

    @property
    def compile_role_parameter(self) -> str:
        """Returns the name of the parameter in SSM with the ARN of the role that compiles."""
        return f"{self.parameter_prefix}{COMPILE_ROLE_ARN}"

    def manifest_key(self, digest: str) -> str:
        return f"{self.artifacts_prefix}{digest}/manifest.json"

    def files_prefix(self, digest: str) -> str:
        return files_prefix(self.root, digest)

    def files_uri(self, digest: str) -> str:
        """Returns the address of an artifact's files, with the slash that SageMaker wants."""
        return f"s3://{self.bucket}/{self.files_prefix(digest)}"


def files_prefix(root: str, digest: str) -> str:
    """Returns the key prefix of an artifact's files, with the final slash."""
    return f"{root}{SHARED_ARTIFACTS}{digest}/files/"


def artifact_label(root: str, digest: str) -> str:
    """Returns how a person is shown an artifact: by digest and, if isolated, by place."""
    return f"{digest} in {root}" if root else digest


def artifact_place(config: ModelConfig, environment: Environment) -> ArtifactPlace:
    if config.artifacts.isolated:
        return own_place(config.name, environment, config.artifacts.key_arn)
    return shared_place(environment)


def shared_place(environment: Environment) -> ArtifactPlace:
    """Returns the place of the artifacts that every model's role reads."""
    return ArtifactPlace(
        bucket=environment.artifact_bucket,
        root="",
        stack_id=FOUNDATION_ID,
        parameter_prefix=environment.parameter_prefix,
        key_alias=environment.key_alias,
        key_arn=environment.artifact_key_arn,
    )


def own_root(model: str) -> str:
    """Returns the beginning of the keys of an isolated model."""
    return f"models/{model}/"


def own_place(model: str, environment: Environment, key_arn: str | None = None) -> ArtifactPlace:
    return ArtifactPlace(
        bucket=environment.artifact_bucket,
        root=own_root(model),
        stack_id=f"{ARTIFACTS_PREFIX}{model}",
        parameter_prefix=f"{environment.parameter_prefix}models/{model}/",
        # No other alias of Slipway's has a slash, so this is nobody else's.
        key_alias=f"{environment.key_alias}/{model}",
        key_arn=key_arn,
    )


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
    capture = config.endpoint.data_capture
    if capture is None:
        return None
    if capture.destination is None:
        return CapturePlace(environment.artifact_bucket, CAPTURED_PREFIX, ARTIFACT_KEY)
    return CapturePlace(*S3Address.of(capture.destination), capture.key_arn)
