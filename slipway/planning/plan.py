"""The deployment plan: everything the stacks will use, as printable data.

Nothing is looked up after this. What `slipway plan NAME` prints is what `cdk synth` renders.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from slipway.planning.memory import MemoryEstimate


@dataclass(frozen=True)
class ImagePlan:
    """The container image.

    Args:
        account: registry account, 12 digits.
        region: registry region.
        repository: ECR repository, for example `slipway/tensorrt`.
        tag: of an image we build, the fingerprint of its sources: the same sources, the same tag;
            of a custom one, its tag or `sha256:` digest.
    """

    account: str
    region: str
    repository: str
    tag: str

    @property
    def uri(self) -> str:
        """Address that SageMaker pulls."""
        suffix = ".cn" if self.region.startswith("cn-") else ""
        registry = f"{self.account}.dkr.ecr.{self.region}.amazonaws.com{suffix}"
        separator = "@" if self.tag.startswith("sha256:") else ":"
        return f"{registry}/{self.repository}{separator}{self.tag}"


@dataclass(frozen=True)
class ArtifactPlan:
    """The model data in S3.

    Args:
        bucket: the environment's artifact bucket.
        digest: SHA-256 of the artifact's manifest: other bytes, another digest.
        size_bytes: sum of its files.
        file_count: number of its files.
        target: what it was compiled for: `cpu`, or a compute capability such as `sm75`.
        published: False only where an unpublished plan was asked for; the digest then names
            nothing, and SageMaker would refuse it.
    """

    bucket: str
    digest: str
    size_bytes: int
    file_count: int
    target: str
    published: bool

    @property
    def s3_uri(self) -> str:
        """Prefix with the files, with the final slash that SageMaker wants."""
        return f"s3://{self.bucket}/{artifact_prefix(self.digest)}files/"


@dataclass(frozen=True)
class VariantPlan:
    """A production variant: what runs, how many, and how long it may take to start.

    Args:
        name: of the variant.
        weight: its share of the requests, relative to the other variants' weights.
        instance_types: in order of preference.
        instance_provision_timeout_seconds: how long to try for one of them before the next.
        instance_count: at creation.
        model_data_download_timeout_seconds: time to download the artifact.
        container_startup_health_check_timeout_seconds: time until /ping answers 200.
        volume_size_gb: of the ML storage volume, or as the type has it.
        inference_ami_version: host image, or SageMaker's choice.
    """

    name: str
    weight: float
    instance_types: tuple[str, ...]
    instance_provision_timeout_seconds: int | None
    instance_count: int
    model_data_download_timeout_seconds: int
    container_startup_health_check_timeout_seconds: int
    volume_size_gb: int | None
    inference_ami_version: str | None

    @property
    def instance_type(self) -> str:
        """The preferred one."""
        return self.instance_types[0]


@dataclass(frozen=True)
class AutoscalingPlan:
    """Target tracking of every variant; one of the two targets is set."""

    min_instance_count: int
    max_instance_count: int
    target_invocations_per_instance_per_minute: float | None
    target_concurrent_requests_per_instance: float | None
    scale_in_cooldown_seconds: int
    scale_out_cooldown_seconds: int


@dataclass(frozen=True)
class AlarmPlan:
    """Thresholds in the units of the metrics they are compared with; None: no such alarm."""

    server_error_rate_percent: float
    model_latency_p99_microseconds: int
    overhead_latency_p99_microseconds: int | None
    client_error_rate_percent: float | None
    memory_utilization_percent: float | None
    disk_utilization_percent: float | None
    gpu_memory_utilization_percent: float | None
    gpu_count: int
    evaluation_periods_minutes: int


@dataclass(frozen=True)
class PlanWarning:
    """Something a reviewer should know; it stops nothing.

    Args:
        code: stable name, by which the CDK can acknowledge it.
        message: what it means.
    """

    code: str
    message: str


@dataclass(frozen=True)
class DeploymentPlan:
    """One model in one environment."""

    name: str
    description: str
    environment: str
    account: str
    region: str
    stack_name: str
    endpoint_name: str
    image: ImagePlan
    artifact: ArtifactPlan
    container_environment: Mapping[str, str]
    network_isolation: bool
    variants: tuple[VariantPlan, ...]
    routing_strategy: str
    memory: MemoryEstimate | None
    autoscaling: AutoscalingPlan | None
    alarms: AlarmPlan
    log_group_name: str
    log_retention_days: int
    tags: Mapping[str, str]
    warnings: tuple[PlanWarning, ...]

    def as_json(self) -> dict[str, Any]:
        """Returns the plan as data, with the two addresses that are derived from it."""
        content = asdict(self)
        content["image"]["uri"] = self.image.uri
        content["artifact"]["s3_uri"] = self.artifact.s3_uri
        return content


def artifact_prefix(digest: str) -> str:
    """Key prefix of an artifact in its bucket, with the final slash."""
    return f"artifacts/{digest}/"
