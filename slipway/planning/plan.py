"""The deployment plan: everything the stacks will use, as printable data.

Nothing is looked up after this. What `slipway plan NAME` prints is what `cdk synth` renders.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from slipway.config.environments import parameter_prefix
from slipway.planning.alarms import AlarmPlan
from slipway.planning.artifact_place import ArtifactPlace, files_prefix
from slipway.planning.asynchronous import AsyncPlan
from slipway.planning.autoscaling import AutoscalingPlan
from slipway.planning.capture import CapturePlan
from slipway.planning.component import ComponentPlan
from slipway.planning.cost import CostEstimate
from slipway.planning.memory_estimate import MemoryEstimate
from slipway.planning.metrics import MetricsPlan
from slipway.planning.rollout import RolloutPlan
from slipway.planning.vpc import VpcPlan


@dataclass(frozen=True)
class ImagePlan:
    """The container image.

    Args:
        account: registry account, 12 digits.
        region: registry region.
        repository: ECR repository, for example `slipway/tensorrt`.
        tag: for an image that Slipway builds, the fingerprint of its sources. For a custom image,
            its tag or `sha256:` digest.
    """

    account: str
    region: str
    repository: str
    tag: str

    @property
    def uri(self) -> str:
        """Returns the URI that SageMaker pulls."""
        suffix = ".cn" if self.region.startswith("cn-") else ""
        registry = f"{self.account}.dkr.ecr.{self.region}.amazonaws.com{suffix}"
        separator = "@" if self.tag.startswith("sha256:") else ":"
        return f"{registry}/{self.repository}{separator}{self.tag}"


@dataclass(frozen=True)
class ImageBase:
    """An image that a container of Slipway is built on.

    Args:
        tag: its name in the tags of the images that are built on it, for example `trt10.13`.
        uri: its address.
        compiles: whether a second image is built on it, which compiles models.
    """

    tag: str
    uri: str
    compiles: bool = True


@dataclass(frozen=True)
class ArtifactPlan:
    """Files in S3: the model data, or the weights that an LMI container copies itself.

    Args:
        bucket: the environment's artifact bucket.
        digest: SHA-256 of the artifact's manifest: other bytes, another digest.
        size_bytes: sum of its files.
        file_count: number of its files.
        target: device that it was compiled for: `cpu`, or a compute capability such as `sm75`.
        published: False only in an unpublished plan; the digest then names nothing, and SageMaker
            would refuse it.
        root: beginning of its keys: empty, or `models/NAME/` for an isolated model.
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
        """Returns the prefix with the files, with the final slash that SageMaker wants."""
        return f"s3://{self.bucket}/{files_prefix(self.root, self.digest)}"


@dataclass(frozen=True)
class PartitionPlan:
    """The partitioning of an LMI model's weights when they are published.

    Args:
        instance_type: type of the training job's instance.
        target: GPUs that the parts are for: a compute capability such as `sm86`.
        arguments: arguments of the job's container.
    """

    instance_type: str
    target: str
    arguments: tuple[str, ...]


@dataclass(frozen=True)
class NeuronPlacement:
    """A model on the NeuronCores of one instance.

    Args:
        pipeline_cores: cores that one copy is spread over; 1 means data parallel.
        workers: copies of the model, each in a process of its own.
        cores_per_worker: cores that one process takes; processes never share a core.
        cores: of the instance.
        batch_size: sequences that the graph is traced for.
        in_flight_requests: how many requests keep all workers busy. In data parallel every
            worker's batch; in a pipeline about twelve batches for each worker.
        formula: how the numbers came about, a sentence for a reviewer.
    """

    pipeline_cores: int
    workers: int
    cores_per_worker: int
    cores: int
    batch_size: int
    in_flight_requests: int
    formula: str

    @property
    def idle_cores(self) -> int:
        """Returns the cores that no worker takes; negative where workers want too many."""
        return self.cores - self.workers * self.cores_per_worker

    @property
    def summary(self) -> str:
        """Returns workers and cores of each, for example `16 workers of 1 NeuronCore`."""
        cores = counted(self.cores_per_worker, "NeuronCore")
        return f"{counted(self.workers, 'worker')} of {cores}"


@dataclass(frozen=True)
class VariantPlan:
    """A production variant: its instances, and how long they may take to start.

    Args:
        name: VariantName.
        weight: its share of the requests, relative to the other variants' weights.
        instance_types: in order of preference.
        instance_provision_timeout_seconds: how long to try for one of them before the next.
        instance_count: number of instances at creation.
        model_data_download_timeout_seconds: time to download the artifact.
        container_startup_health_check_timeout_seconds: time until /ping answers 200.
        volume_size_gb: size of the ML storage volume; None for the type's own.
        inference_ami_version: host image; None for SageMaker's choice.
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
        """Returns the preferred type."""
        return self.instance_types[0]


@dataclass(frozen=True)
class PlanWarning:
    """A warning for a reviewer; it stops nothing.

    Args:
        code: stable name, by which the CDK can acknowledge it.
        message: says what it means for the deployment.
    """

    code: str
    message: str


@dataclass(frozen=True)
class GuestPlan:
    """What the endpoint of one model needs to know of another model whose copies run on it.

    Args:
        name: of the guest's config.
        image: which the copies run.
        log_group_name: of the copies.
        max_instance_count: instances that hold the guest's most copies.
    """

    name: str
    image: ImagePlan
    log_group_name: str
    max_instance_count: int


def most_instances(component: ComponentPlan, guests: Sequence[GuestPlan]) -> int:
    """Returns the instances that hold the most copies of a host and of its guests.

    Args:
        component: of the host.
        guests: with copies on the same endpoint.
    """
    return component.max_instance_count + sum(guest.max_instance_count for guest in guests)


@dataclass(frozen=True)
class DeploymentPlan:
    """One model in one environment.

    Args:
        name: file stem of the config.
        description: of the model, for people.
        environment: name of the environment.
        project: part of every name in the account; empty if environments.yaml has none.
        account: AWS account of the environment.
        region: AWS region of the environment.
        stack_name: name in CloudFormation.
        endpoint_name: name in SageMaker.
        image: the container image.
        artifact_place: bucket, prefix and key of the published files.
        artifact: the model data, which SageMaker brings to /opt/ml/model.
        weights: files that an LMI container copies itself while it starts; None if the model data
            has the weights in it.
        partition: how these weights were partitioned before; None if they are not.
        serving_properties: keys and values of an LMI package's serving.properties.
        container_environment: variables of the container.
        network_isolation: whether the container can open no outbound connection.
        execution_role_arn: existing role that SageMaker runs the model with; None for a role that
            the stack makes.
        vpc: network of the containers; None for SageMaker's own.
        capture: which requests and answers are written to S3; None for none.
        metrics: which metrics SageMaker publishes; None for AWS's defaults.
        asynchronous: queue of an asynchronous endpoint; None for an endpoint that answers at once.
        component: copies of the model on an endpoint that scales to zero; None in another mode.
        host: the model on whose endpoint the copies run; None for an endpoint of its own.
        guests: the models whose copies run on this model's endpoint.
        volume_key_arn: key of the storage volumes; None for SageMaker's own.
        variants: the production variants; with more than one, requests are shared by weight.
        shadow: gets copies of the requests, and its answers are discarded; None without one. Its
            weight is the share of the requests, from 0 to 1.
        capacity_reservation_arn: training plan with the only capacity for the instances; None for
            any capacity.
        routing_strategy: how an instance is chosen for a request.
        neuron: layout of the model on NeuronCores.
        memory: estimate of the accelerator's memory; None if nothing is known.
        cost: cost of the instances per month.
        autoscaling: of every variant; None for a fixed count.
        alarms: thresholds.
        rollout: how an update moves the traffic; None for SageMaker's default, all at once.
        log_group_name: the endpoint's log group.
        log_retention_days: how long log lines are kept.
        termination_protection: whether CloudFormation refuses to delete the stack.
        permissions_boundary_arn: managed policy that limits the stack's roles; None for none.
        log_key: ARN of the key that encrypts the log groups, or `artifact` for the artifact
            bucket's key; None for CloudWatch Logs' own.
        tags: tags of every resource.
        warnings: warnings for a reviewer.
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
    execution_role_arn: str | None
    vpc: VpcPlan | None
    capture: CapturePlan | None
    metrics: MetricsPlan | None
    asynchronous: AsyncPlan | None
    component: ComponentPlan | None
    host: str | None
    guests: tuple[GuestPlan, ...]
    volume_key_arn: str | None
    variants: tuple[VariantPlan, ...]
    shadow: VariantPlan | None
    capacity_reservation_arn: str | None
    routing_strategy: str
    neuron: NeuronPlacement | None
    memory: MemoryEstimate | None
    cost: CostEstimate
    autoscaling: AutoscalingPlan | None
    alarms: AlarmPlan
    rollout: RolloutPlan | None
    log_group_name: str
    log_retention_days: int
    termination_protection: bool
    permissions_boundary_arn: str | None
    log_key: str | None
    tags: Mapping[str, str]
    warnings: tuple[PlanWarning, ...]

    @property
    def mode(self) -> str:
        """Returns the mode by its name in `endpoint.mode`."""
        if self.asynchronous is not None:
            return "async"
        return "realtime" if self.component is None else "scale_to_zero"

    @property
    def every_variant(self) -> tuple[VariantPlan, ...]:
        """Returns the production variants, and the shadow variant if there is one."""
        return self.variants if self.shadow is None else (*self.variants, self.shadow)

    @property
    def max_instance_count(self) -> int:
        """Returns the most instances of an endpoint that hosts copies, its guests' included.

        Raises:
            ValueError: the endpoint hosts no copies.
        """
        if self.component is None:
            raise ValueError(f"the endpoint of {self.name} hosts no copies")
        return most_instances(self.component, self.guests)

    @property
    def role_parameter(self) -> str:
        """Returns the name of the parameter in SSM with the role of an endpoint that has guests."""
        return f"{self.parameter_prefix}models/{self.host or self.name}/execution-role-arn"

    @property
    def parameter_prefix(self) -> str:
        """Returns the beginning of the names of the foundation's parameters in SSM."""
        return parameter_prefix(self.project, self.environment)

    @property
    def resources(self) -> dict[str, int]:
        """Returns the stack's resources: CloudFormation's types, and how many of each."""
        variants = len(self.variants)
        scaled = variants if self.autoscaling is not None else 0
        stepped = variants * (self.autoscaling.step_policy_count if self.autoscaling else 0)
        # A component has a target, a policy that tracks the load, and a policy with an alarm that
        # wakes it.
        woken = 0 if self.component is None else 1
        # A guest has no endpoint, no role, and no function for updates.
        own = int(self.host is None)
        # An existing role gets no policies.
        made = own * int(self.execution_role_arn is None)
        found = {
            "AWS::ApplicationAutoScaling::ScalableTarget": scaled + woken,
            "AWS::ApplicationAutoScaling::ScalingPolicy": scaled + stepped + 2 * woken,
            "AWS::CloudWatch::Alarm": variants * self._alarms_of_a_variant + stepped + woken,
            "AWS::IAM::Policy": made
            * sum(
                mode is not None
                for mode in (self.vpc, self.volume_key_arn, self.capture, self.asynchronous)
            ),
            "AWS::IAM::Role": own + made,
            "AWS::Lambda::Function": own,
            "AWS::Logs::LogGroup": 1 + own,
            "AWS::SageMaker::Endpoint": own,
            "AWS::SageMaker::EndpointConfig": own,
            "AWS::SageMaker::InferenceComponent": woken,
            "AWS::SageMaker::Model": 1,
            "AWS::SSM::Parameter": made * bool(self.guests),
            # Two before the endpoint is updated. With autoscaling there is one after it, and with
            # steps one after their alarms.
            "Custom::SlipwayScaling": 2 * own + bool(scaled) + bool(stepped),
        }
        return {name: count for name, count in found.items() if count}

    @property
    def _alarms_of_a_variant(self) -> int:
        guards = self.rollout.new_fleet_alarms if self.rollout is not None else ()
        return self.alarms.count + len(guards)

    def as_json(self) -> dict[str, Any]:
        """Returns the plan as data, with what is derived from it."""
        content = asdict(self)
        content["resources"] = self.resources
        content["alarms"] = self.alarms.as_json()
        content["image"]["uri"] = self.image.uri
        content["artifact"]["s3_uri"] = self.artifact.s3_uri
        if self.weights is not None:
            content["weights"]["s3_uri"] = self.weights.s3_uri
        if self.rollout is not None:
            content["rollout"] |= self.rollout.as_json()
        if self.component is not None:
            content["component"]["max_instance_count"] = self.max_instance_count
        return content


def counted(number: int, noun: str) -> str:
    """Returns a number with its noun, in the plural where it has to be."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
