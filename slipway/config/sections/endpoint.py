"""`endpoint`: what SageMaker runs, and how requests reach it."""

from typing import Annotated, Any, Literal

from pydantic import Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from slipway.config.sections.base import (
    Count,
    InstanceType,
    LogRetentionDays,
    Percent,
    S3Prefix,
    Section,
    TopicArn,
)
from slipway.config.sections.keys import KeyArn
from slipway.config.sections.network import Vpc
from slipway.config.sections.recording import CoreDump, DataCapture, Metrics
from slipway.config.sections.routing import PrefixRouting
from slipway.config.sections.scale_to_zero import ScaleToZero
from slipway.config.sections.serverless import Serverless
from slipway.s3_address import S3Address

SHADOW_VARIANT_NAME = "Shadow"
VariantName = Annotated[str, Field(pattern=r"^[a-zA-Z0-9](-*[a-zA-Z0-9])*$", max_length=63)]
# botocore's enum of InferenceAmiVersion.
AmiVersion = Literal[
    "al2-ami-sagemaker-inference-gpu-2",
    "al2-ami-sagemaker-inference-gpu-2-1",
    "al2-ami-sagemaker-inference-gpu-3-1",
    "al2-ami-sagemaker-inference-neuron-2",
    "al2023-ami-sagemaker-inference-gpu-4-1",
]


# Any: pydantic gives each section a copy, with the section's own annotation.
_OWN_INSTANCES: Any = Field(
    None,
    min_length=1,
    max_length=5,
    strict=False,
    description="As `endpoint.instances`.",
    examples=[["ml.g5.xlarge"]],
)
_OWN_INSTANCE_COUNT: Any = Field(
    None, ge=1, le=1000, description="As `endpoint.instance_count`.", examples=[1]
)
_OWN_MODEL: Any = Field(
    None,
    description="Differences from the file's `model`, laid over it as an environment's sections "
    "are. With this section, `serving` or `artifacts`, another model is served.",
    examples=[{"family": "gpt2", "parameters": 774030080}],
)
_OWN_SERVING: Any = Field(
    None,
    description="Differences from the file's `serving`. Another `container` replaces the whole "
    "section.",
    examples=[{"dtype": "bf16"}],
)
_OWN_ARTIFACTS: Any = Field(
    None,
    description="Differences from the file's `artifacts`. Weights of another `source` replace "
    "the file's.",
    examples=[{"weights": {"source": "path", "path": "build/candidate"}}],
)
OWN_SECTIONS = ("model", "serving", "artifacts")
"""Sections in which a variant may differ from the file: then it serves a model of its own."""


def has_own_model(variant: object) -> bool:
    """Returns whether a variant, or none, serves another model than the endpoint's."""
    return any(getattr(variant, name, None) for name in OWN_SECTIONS)


class Variant(Section):
    """One of several production variants. It takes what it leaves out from `endpoint`."""

    name: VariantName = Field(description="Name of the variant.", examples=["candidate"])
    weight: float = Field(
        ge=0,
        le=1_000_000_000,
        allow_inf_nan=False,
        description="Share of the requests, relative to the other variants' weights. It changes "
        "without new instances.",
        examples=[0.1],
    )
    instances: tuple[InstanceType, ...] | None = _OWN_INSTANCES
    instance_count: int | None = _OWN_INSTANCE_COUNT
    model: dict[str, Any] | None = _OWN_MODEL
    serving: dict[str, Any] | None = _OWN_SERVING
    artifacts: dict[str, Any] | None = _OWN_ARTIFACTS


class Shadow(Section):
    """A variant that gets copies of the requests. Its answers are discarded."""

    sampling_percent: Percent = Field(
        description="Share of the requests that are copied to it.",
        examples=[50],
    )
    instances: tuple[InstanceType, ...] | None = _OWN_INSTANCES
    instance_count: int | None = _OWN_INSTANCE_COUNT
    model: dict[str, Any] | None = _OWN_MODEL
    serving: dict[str, Any] | None = _OWN_SERVING
    artifacts: dict[str, Any] | None = _OWN_ARTIFACTS


class ModelOverride(Section):
    """What some fallback types of a pool serve in place of the endpoint's model."""

    instances: tuple[InstanceType, ...] = Field(
        min_length=1,
        max_length=4,
        strict=False,
        description="Types that come after the first one in `instances`.",
        examples=[["ml.g6.xlarge"]],
    )
    model: dict[str, Any] | None = _OWN_MODEL
    serving: dict[str, Any] | None = _OWN_SERVING
    artifacts: dict[str, Any] | None = _OWN_ARTIFACTS

    @property
    def name(self) -> str:
        """Returns the name under which the model is published: its first type."""
        return self.instances[0]


def _once(*texts: str | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for text in texts if text is not None))


class AsyncInference(Section):
    """Requests and answers lie in S3: bodies up to 1 GB, up to an hour of compute, and a queue."""

    input: S3Prefix = Field(
        description="Prefix of the requests' objects, which the execution role may read.",
        examples=["s3://my-requests/ocr/"],
    )
    input_key_arn: KeyArn | None = Field(
        None,
        description="KMS key of the requests' objects, with which the execution role may decrypt. "
        "Not needed without a key of your own.",
        examples=["arn:aws:kms:eu-west-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"],
    )
    output: S3Prefix = Field(
        description="Prefix under which answers are written.", examples=["s3://my-answers/ocr/"]
    )
    failure_output: S3Prefix | None = Field(
        None,
        description="Prefix under which failures are written.",
        examples=["s3://my-answers/failed/"],
    )
    output_key_arn: KeyArn | None = Field(
        None,
        description="KMS key that encrypts answers and failures. Without it the bucket's own "
        "encryption applies.",
        examples=["arn:aws:kms:eu-west-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"],
    )
    success_topic_arn: TopicArn | None = Field(
        None,
        description="SNS topic that gets a message for every answer.",
        examples=["arn:aws:sns:eu-west-1:123456789012:answers"],
    )
    error_topic_arn: TopicArn | None = Field(
        None,
        description="SNS topic that gets a message for every failure.",
        examples=["arn:aws:sns:eu-west-1:123456789012:failures"],
    )
    include_response_in: tuple[Literal["success", "error"], ...] = Field(
        (),
        max_length=2,
        strict=False,
        description="Topics whose messages carry the container's answer, up to 128 KB, beside "
        "its address in S3.",
        examples=[["success", "error"]],
    )
    topic_key_arn: KeyArn | None = Field(
        None,
        description="KMS key of encrypted topics, which the execution role may use.",
        examples=["arn:aws:kms:eu-west-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"],
    )
    max_concurrent_invocations_per_instance: Count = Field(
        1,
        description="Number of requests that one instance computes at a time.",
        examples=[4],
    )

    @property
    def written(self) -> tuple[S3Address, ...]:
        """Returns the prefixes that the execution role writes below, each once."""
        return tuple(S3Address.of(uri) for uri in _once(self.output, self.failure_output))

    @property
    def buckets(self) -> tuple[str, ...]:
        return _once(S3Address.of(self.input).bucket, *(each.bucket for each in self.written))

    @property
    def topic_arns(self) -> tuple[str, ...]:
        return _once(self.success_topic_arn, self.error_topic_arn)

    @property
    def key_arns(self) -> tuple[str, ...]:
        return _once(self.input_key_arn, self.output_key_arn, self.topic_key_arn)


class Endpoint(Section):
    """The machines that SageMaker runs, and how requests reach them."""

    mode: Literal["realtime", "async", "scale_to_zero", "serverless"] = Field(
        "realtime",
        description="How requests reach the container, and whether the fleet may shrink to "
        "zero instances. With `serverless` there are no instances.",
        examples=["realtime"],
    )
    instances: tuple[InstanceType, ...] = Field(
        (),
        min_length=1,
        max_length=5,
        strict=False,
        validate_default=True,
        description="Instance types in order of preference. SageMaker takes the next type "
        "where AWS has no capacity of the one before it. Needed in each mode but `serverless`.",
        examples=[["ml.g4dn.xlarge"]],
    )
    model_overrides: tuple[ModelOverride, ...] = Field(
        (),
        max_length=4,
        strict=False,
        description="Models of fallback types that cannot run the endpoint's model: an engine "
        "compiled for another GPU, or other settings.",
    )
    instance_provision_timeout_seconds: int | None = Field(
        None,
        ge=300,
        le=3600,
        description="Time to try for instances of all types together. Only with several types.",
        examples=[600],
    )
    capacity_reservation_arn: str | None = Field(
        None,
        # botocore's pattern of MlReservationArn.
        pattern=r"^arn:aws[a-z-]*:sagemaker:[a-z0-9-]+:[0-9]{12}:[a-z0-9-]{1,14}/\S+$",
        max_length=258,
        description="Training plan of SageMaker for this endpoint. Instances start only in the "
        "capacity that it reserves, and stop serving when it ends.",
        examples=["arn:aws:sagemaker:us-east-1:123456789012:training-plan/p5-for-search"],
    )
    instance_count: Count = Field(
        1,
        description="Instances. With `autoscaling`, those at creation, which `min_instance_count` "
        "raises at once.",
        examples=[2],
    )
    model_data_download_timeout_seconds: int | None = Field(
        None,
        ge=60,
        le=3600,
        description="Time that an instance may take to download the artifact. Without it: at "
        "least 600 seconds, and enough for `artifacts.size_gb`.",
        examples=[600],
    )
    container_startup_health_check_timeout_seconds: int | None = Field(
        None,
        ge=60,
        le=3600,
        description="Time that the container may take until /ping answers 200. Without it: "
        "600 seconds, or enough for the weights that an LMI container copies, by "
        "`artifacts.size_gb`.",
        examples=[600],
    )
    volume_size_gb: int | None = Field(
        None,
        ge=1,
        le=512,
        description="Size of the ML storage volume. Only for instance types without local "
        "NVMe disks.",
        examples=[30],
    )
    async_inference: AsyncInference | None = Field(None, description="Needed with `mode: async`.")
    scale_to_zero: ScaleToZero | None = Field(
        None, description="Needed with `mode: scale_to_zero`."
    )
    serverless: Serverless | None = Field(None, description="Needed with `mode: serverless`.")
    variants: tuple[Variant, ...] = Field(
        (),
        max_length=10,
        strict=False,
        description="Several production variants, of one model or of several. Without it there "
        "is one, `AllTraffic`.",
    )
    shadow: Shadow | None = Field(
        None,
        description="A shadow variant. It is not scaled and has no alarms. It needs "
        "`mode: realtime`, and excludes `variants`.",
    )
    routing: Literal["least_outstanding_requests", "random", "prefix_aware"] = Field(
        "least_outstanding_requests",
        description="How SageMaker chooses the instance for a request. `prefix_aware` suits "
        "language models that cache the beginnings of prompts.",
        examples=["random"],
    )
    prefix_routing: PrefixRouting | None = Field(
        None, description="Needed with `routing: prefix_aware`."
    )
    inference_ami_version: AmiVersion | None = Field(
        None,
        description="Host image, with its GPU or Neuron driver. Without it Slipway chooses "
        "one for the image's CUDA or Neuron version.",
        examples=["al2-ami-sagemaker-inference-gpu-3-1"],
    )
    data_capture: DataCapture | None = Field(None, description="Without it nothing is captured.")
    metrics: Metrics | None = Field(
        None,
        description="Without it: one value a minute and no metric of a single instance. AWS's "
        "detailed observability is on.",
    )
    core_dump: CoreDump | None = Field(
        None, description="Without it no crash is dumped. The embedded AWS writes no dumps."
    )
    ssm_access: bool = Field(
        False,
        description="Opens the containers to sessions of Systems Manager, for accounts that "
        "AWS Support has allowlisted. AWS then replaces faulty and unpatched instances a day "
        "later. It needs `network_isolation: false`. The embedded AWS has no sessions. It is "
        "usually set for one environment, under `environments`.",
        examples=[True],
    )
    network_isolation: bool = Field(
        True, description="The container can open no outbound connection.", examples=[True]
    )
    execution_role_arn: str | None = Field(
        None,
        # botocore's pattern of RoleArn.
        pattern=r"^arn:aws[a-z-]*:iam::[0-9]{12}:role/[a-zA-Z_0-9+=,.@/-]+$",
        max_length=2048,
        description="Existing role that SageMaker runs the model with. Without it Slipway makes "
        "one. `slipway iam NAME --execution-role` prints the rights that it needs. It is usually "
        "set for one environment, under `environments`.",
        examples=["arn:aws:iam::123456789012:role/sagemaker-inference"],
    )
    vpc: Vpc | None = Field(
        None,
        description="Network of the containers. Without it they run in the environment's "
        "`network`, or else in SageMaker's own.",
    )
    volume_key_arn: KeyArn | None = Field(
        None,
        description="KMS key of the ML storage volumes. Its key policy must let the execution "
        "role make grants. Local NVMe disks are encrypted with a key of their own.",
        examples=["arn:aws:kms:eu-west-1:123456789012:key/0a1b2c3d-4e5f-6a7b-8c9d-0e1f2a3b4c5d"],
    )
    termination_protection: bool = Field(
        False,
        description="CloudFormation refuses to delete the endpoint's stack, also for "
        "`cdk destroy`. It is usually set for one environment, under `environments`.",
        examples=[True],
    )
    log_retention_days: LogRetentionDays = Field(
        30,
        description="Number of days that CloudWatch Logs keeps the endpoint's log lines.",
        examples=[30],
    )
    dashboard: bool = Field(
        True,
        description="Makes a dashboard in CloudWatch: requests, times, instances, machines and "
        "alarms. The first three of an account cost nothing, and each further one costs money.",
        examples=[False],
    )

    @field_validator("instances", mode="wrap")
    @classmethod
    def _needed(cls, value: Any, check: Any, info: ValidationInfo) -> Any:
        """Takes no instances only where nobody names any for a serverless endpoint."""
        if value != ():
            return check(value)
        if info.data.get("mode") == "serverless":
            return value
        raise PydanticCustomError("missing", "Field required")

    @property
    def capacity(self) -> Serverless | None:
        return self.serverless if self.mode == "serverless" else None

    @property
    def overridden(self) -> frozenset[str]:
        return frozenset(name for each in self.model_overrides for name in each.instances)

    @property
    def queue(self) -> AsyncInference | None:
        return self.async_inference if self.mode == "async" else None

    @property
    def copies(self) -> ScaleToZero | None:
        return self.scale_to_zero if self.mode == "scale_to_zero" else None

    @property
    def host(self) -> str | None:
        """Returns the model on whose endpoint the copies run; None for an endpoint of its own."""
        return None if self.copies is None else self.copies.endpoint_of
