"""The deployment plan: everything the stacks will use, as printable data.

Nothing is looked up after this. What `slipway plan NAME` prints is what `cdk synth` renders.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from slipway.config.environments import parameter_prefix
from slipway.planning.artifact_place import ArtifactPlace, files_prefix
from slipway.planning.cost import CostEstimate
from slipway.planning.memory import MemoryEstimate
from slipway.planning.neuron import NeuronPlacement


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
    """Files in S3: the model data, or the weights that an LMI container copies itself.

    Args:
        bucket: the environment's artifact bucket.
        digest: SHA-256 of the artifact's manifest: other bytes, another digest.
        size_bytes: sum of its files.
        file_count: number of its files.
        target: what it was compiled for: `cpu`, or a compute capability such as `sm75`.
        published: False only where an unpublished plan was asked for; the digest then names
            nothing, and SageMaker would refuse it.
        root: what its keys begin with: empty, or `models/NAME/` of an isolated model.
    """

    bucket: str
    digest: str
    size_bytes: int
    file_count: int
    target: str
    published: bool
    root: str = ""

    @property
    def s3_uri(self) -> str:
        """Prefix with the files, with the final slash that SageMaker wants."""
        return f"s3://{self.bucket}/{files_prefix(self.root, self.digest)}"


@dataclass(frozen=True)
class PartitionPlan:
    """How an LMI model's weights are partitioned when they are published.

    Args:
        instance_type: where the training job runs.
        target: what the parts are for: a compute capability such as `sm86`.
        arguments: of the job's container.
    """

    instance_type: str
    target: str
    arguments: tuple[str, ...]


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
        gpu_count: GPUs of one instance, the same for every type of the pool; 0 without any.
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
    gpu_count: int

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
    evaluation_periods_minutes: int

    @property
    def count(self) -> int:
        """How many alarms each variant has."""
        optional = (
            self.overhead_latency_p99_microseconds,
            self.client_error_rate_percent,
            self.memory_utilization_percent,
            self.disk_utilization_percent,
            self.gpu_memory_utilization_percent,
        )
        return 2 + sum(threshold is not None for threshold in optional)


@dataclass(frozen=True)
class RolloutPlan:
    """How an update moves the traffic, where the config asks for more than SageMaker's default.

    Args:
        wait_seconds: watch after the traffic has moved, before the update is complete.
        termination_wait_seconds: how long the old fleet stays after that.
        max_execution_seconds: an update that takes longer is undone; None: SageMaker's limit.
        rollback_alarms: alarms of each variant that undo it, by their names in `alarms`.
    """

    wait_seconds: int
    termination_wait_seconds: int
    max_execution_seconds: int | None
    rollback_alarms: tuple[str, ...]


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
    """One model in one environment.

    Args:
        name: of the model.
        description: of the model, for people.
        environment: name of the environment.
        project: part of every name in the account; empty where environments.yaml has none.
        account: where it is deployed.
        region: where it is deployed.
        stack_name: in CloudFormation.
        endpoint_name: in SageMaker.
        image: the container image.
        artifact_place: where the files lie that were published for it, and their key.
        artifact: the model data, which SageMaker brings to /opt/ml/model.
        weights: what an LMI container copies itself while it starts; None where the model data has
            the weights in it.
        partition: how those were split before; None where they are not.
        serving_properties: keys and values of an LMI package's serving.properties.
        container_environment: variables of the container.
        network_isolation: whether the container can open no outbound connection.
        variants: what runs; with more than one, by weight.
        routing_strategy: how an instance is chosen for a request.
        neuron: how a model is laid over NeuronCores.
        memory: estimate of the accelerator's memory; None where nothing is known.
        cost: what the instances cost a month.
        autoscaling: of every variant; None for a fixed count.
        alarms: thresholds.
        rollout: how an update moves the traffic; None for SageMaker's default, all at once.
        log_group_name: of the endpoint.
        log_retention_days: how long its lines are kept.
        log_key: what encrypts the log groups: the ARN of a key, or `artifact` for that of the
            artifact bucket; None for CloudWatch Logs' own.
        tags: of every resource.
        warnings: what a reviewer should know.
    """

    name: str
    description: str
    environment: str
    project: str
    account: str
    region: str
    stack_name: str
    endpoint_name: str
    image: ImagePlan
    artifact_place: ArtifactPlace
    artifact: ArtifactPlan
    weights: ArtifactPlan | None
    partition: PartitionPlan | None
    serving_properties: Mapping[str, str]
    container_environment: Mapping[str, str]
    network_isolation: bool
    variants: tuple[VariantPlan, ...]
    routing_strategy: str
    neuron: NeuronPlacement | None
    memory: MemoryEstimate | None
    cost: CostEstimate
    autoscaling: AutoscalingPlan | None
    alarms: AlarmPlan
    rollout: RolloutPlan | None
    log_group_name: str
    log_retention_days: int
    log_key: str | None
    tags: Mapping[str, str]
    warnings: tuple[PlanWarning, ...]

    @property
    def parameter_prefix(self) -> str:
        """What the names of the foundation's parameters in SSM begin with."""
        return parameter_prefix(self.project, self.environment)

    @property
    def resources(self) -> dict[str, int]:
        """What the stack will hold: CloudFormation's resource types, and how many of each."""
        variants = len(self.variants)
        scaled = variants if self.autoscaling is not None else 0
        found = {
            "AWS::ApplicationAutoScaling::ScalableTarget": scaled,
            "AWS::ApplicationAutoScaling::ScalingPolicy": scaled,
            "AWS::CloudWatch::Alarm": variants * self.alarms.count,
            "AWS::IAM::Role": 2,
            "AWS::Lambda::Function": 1,
            "AWS::Logs::LogGroup": 2,
            "AWS::SageMaker::Endpoint": 1,
            "AWS::SageMaker::EndpointConfig": 1,
            "AWS::SageMaker::Model": 1,
            # Two before the endpoint is updated and, with autoscaling, one after it.
            "Custom::SlipwayScaling": 3 if scaled else 2,
        }
        return {name: count for name, count in found.items() if count}

    def as_json(self) -> dict[str, Any]:
        """Returns the plan as data, with what is derived from it."""
        content = asdict(self)
        content["resources"] = self.resources
        content["image"]["uri"] = self.image.uri
        content["artifact"]["s3_uri"] = self.artifact.s3_uri
        if self.weights is not None:
            content["weights"]["s3_uri"] = self.weights.s3_uri
        return content
