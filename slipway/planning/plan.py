"""The deployment plan: everything the stacks will use, as printable data.

Nothing is looked up after this. What `slipway plan NAME` prints is what `cdk synth` renders.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Literal

from slipway.config.environments import Environment
from slipway.config.load import Default
from slipway.config.schema import ModelConfig
from slipway.config.sections.rollout import Rollout
from slipway.config.sections.serverless import Serverless
from slipway.facts.images import ImageFacts
from slipway.planning import artifact_place as places
from slipway.planning.artifact_place import ArtifactPlace, CapturePlace, capture_place
from slipway.planning.component import ComponentPlan
from slipway.planning.cost import CostEstimate
from slipway.planning.memory_estimate import MemoryEstimate, NeuronPlacement
from slipway.planning.placements import SERVERLESS
from slipway.planning.vpc import VpcPlan, vpc_plan

# Of a base's digest, in the tags of the images on it.
_BASE_DIGITS = 12


@dataclass(frozen=True)
class ImagePlan:
    """The container image.

    `tag` is the fingerprint of the sources of an image that Slipway builds, or a custom image's tag
    or `sha256:` digest. `base` is the address of the image that it is built on. `private_registry`
    is the host of a registry in the endpoint's VPC, and the function tells user and password of
    that registry.
    """

    account: str
    region: str
    repository: str
    tag: str
    base: str | None = None
    private_registry: str | None = None
    credentials_function_arn: str | None = None

    @property
    def uri(self) -> str:
        suffix = ".cn" if self.region.startswith("cn-") else ""
        ecr = f"{self.account}.dkr.ecr.{self.region}.amazonaws.com{suffix}"
        registry = self.private_registry or ecr
        separator = "@" if self.tag.startswith("sha256:") else ":"
        return f"{registry}/{self.repository}{separator}{self.tag}"


@dataclass(frozen=True)
class ImageBase:
    """An image that a container of Slipway is built on.

    `tag` is its name in the tags of those images, for example `trt10.13`. `digest` pins it, where a
    source tells one. `compiles` says whether a second image is built on it, which compiles models.
    """

    tag: str
    address: str
    digest: str | None = None
    compiles: bool = True

    @classmethod
    def of(cls, aws: ImageFacts, tag: str, *, compiles: bool = True) -> "ImageBase | None":
        """Returns AWS's image as a base; None where it is not published in the region."""
        return None if aws.uri is None else cls(tag, aws.uri, aws.digest, compiles)

    @property
    def uri(self) -> str:
        """Returns what a build pulls: by the digest if there is one."""
        return self.address if self.digest is None else f"{self.address}@{self.digest}"

    @property
    def pinned_tag(self) -> str:
        """Returns how tags of images on it begin; another digest makes another image."""
        if self.digest is None:
            return self.tag
        return f"{self.tag}-{self.digest.removeprefix('sha256:')[:_BASE_DIGITS]}"


@dataclass(frozen=True)
class ArtifactPlan:
    """Files in S3: the model data, or the weights that an LMI container copies itself.

    Args:
        digest: SHA-256 of the artifact's manifest.
        target: device that it was compiled for: `cpu`, or a compute capability such as `sm75`.
        published: False only in an unpublished plan; the digest then names nothing, and SageMaker
            would refuse it.
        root: beginning of its keys: empty, or `models/NAME/` for an isolated model.
        object_name: the one file that is the model data; None for all of them.
        accepts_eula: whether SageMaker is told that the licence is accepted.
        is_archive: whether it is one archive with the files, as a serverless endpoint needs it.
    """

    bucket: str
    digest: str
    size_bytes: int
    file_count: int
    target: str
    published: bool
    root: str = ""
    object_name: str | None = None
    is_archive: bool = False
    accepts_eula: bool = False

    @property
    def compression(self) -> Literal["Gzip", "None"]:
        """Returns SageMaker's name of how the model data is packed."""
        return "Gzip" if self.data_uri.endswith(".tar.gz") else "None"

    @property
    def data_uri(self) -> str:
        """Returns the address of the model data: the prefix, or one object below it."""
        return f"{self.s3_uri}{self.object_name or ''}"

    @property
    def s3_uri(self) -> str:
        """Returns the prefix with the files, with the final slash that SageMaker wants."""
        return f"s3://{self.bucket}/{places.files_prefix(self.root, self.digest)}"

    @property
    def label(self) -> str:
        """Returns how commands name it."""
        return places.artifact_label(self.root, self.digest)


@dataclass(frozen=True)
class PartitionPlan:
    """The job that partitioned an LMI model's weights, for GPUs such as `sm86`."""

    instance_type: str
    target: str
    arguments: tuple[str, ...]


@dataclass(frozen=True)
class ServedModel:
    """What a container serves. SageMaker brings the artifact, the model data, to /opt/ml/model.

    An LMI container copies `weights` itself while it starts; None if the model data has them in it.
    They may have been partitioned before.
    """

    image: ImagePlan
    artifact: ArtifactPlan
    weights: ArtifactPlan | None
    partition: PartitionPlan | None
    serving_properties: Mapping[str, str]
    container_environment: Mapping[str, str]
    neuron: NeuronPlacement | None
    memory: MemoryEstimate | None

    @property
    def container(self) -> tuple[object, ...]:
        """Returns what SageMaker is told: two models with the same are one."""
        image, data = self.image, self.artifact
        told = (image.uri, image.credentials_function_arn, data.data_uri, data.accepts_eula)
        return *told, self.container_environment

    @property
    def served(self) -> "ServedModel":
        """Returns these values without those of a plan."""
        return ServedModel(*(getattr(self, each.name) for each in fields(ServedModel)))


@dataclass(frozen=True)
class VariantPlan:
    """A production variant: its instances, and how long they may take to start.

    Args:
        weight: its share of the requests, relative to the other variants' weights.
        instance_types: in order of preference; none if it is serverless.
        instance_count: at creation.
        inference_ami_version: host image; None for SageMaker's choice.
        gpu_count: GPUs of one instance, the same for every type of the pool.
        own: the variant's own model; None for the endpoint's.
    """

    name: str
    weight: float
    instance_types: tuple[str, ...]
    instance_count: int
    model_data_download_timeout_seconds: int
    container_startup_health_check_timeout_seconds: int
    inference_ami_version: str | None
    gpu_count: int
    own: ServedModel | None = None
    serverless: Serverless | None = None

    @property
    def machines(self) -> str:
        """Returns what the variant runs on, in words."""
        if self.serverless is not None:
            return self.serverless.summary
        return f"{self.instance_count} x {', or '.join(self.instance_types)}"

    @property
    def instance_type(self) -> str:
        """Returns the preferred type."""
        return self.instance_types[0] if self.instance_types else SERVERLESS


@dataclass(frozen=True)
class PlanWarning:
    """A warning for a reviewer; it stops nothing. The CDK acknowledges it by its code."""

    code: str
    message: str


@dataclass(frozen=True)
class GuestPlan:
    """What a model's endpoint needs to know of another model whose copies run on it.

    `max_instance_count` holds the guest's most copies, and the alarms of `watched_stacks` undo an
    update of them.
    """

    name: str
    image: ImagePlan
    log_group_name: str
    max_instance_count: int
    watched_stacks: tuple[str, ...]


def most_instances(component: ComponentPlan, guests: Sequence[GuestPlan]) -> int:
    """Returns the instances that hold the most copies of a host and of its guests."""
    return component.max_instance_count + sum(guest.max_instance_count for guest in guests)


@dataclass(frozen=True)
class DeploymentPlan(ServedModel):
    """One model in one environment: its config, what it serves, and what else follows.

    A value that the config or the environment says has its only place there. Values that other
    facts are needed for are fields here.

    Args:
        config: with the environment's differences laid over it.
        shadow: gets copies of the requests, and its answers are discarded. Its weight is the share
            of the requests, from 0 to 1.
        overrides: fallback types with an own model, as the variant of an endpoint of their own. Its
            name is the first type.
        defaults: what is in the config, and not in the model's file.
    """

    config: ModelConfig
    environment: Environment
    component: ComponentPlan | None
    guests: tuple[GuestPlan, ...]
    variants: tuple[VariantPlan, ...]
    shadow: VariantPlan | None
    overrides: tuple[VariantPlan, ...]
    cost: CostEstimate
    warnings: tuple[PlanWarning, ...]
    defaults: tuple[Default, ...] = ()

    @property
    def stack_name(self) -> str:
        return self.environment.stack_name(self.config.name)

    @property
    def host(self) -> str | None:
        """Returns the model on whose endpoint the copies run; None for an endpoint of its own."""
        return self.config.endpoint.host

    @property
    def endpoint_name(self) -> str:
        """Returns the name in SageMaker, which is that of the stack with the endpoint."""
        return self.environment.stack_name(self.host or self.config.name)

    @property
    def is_adapter(self) -> bool:
        """Returns whether it is a LoRA adapter in the copies of its host."""
        return self.config.adapter_of is not None

    @property
    def log_group_name(self) -> str:
        """Returns the log group of the containers, which SageMaker names."""
        if self.is_adapter:
            return f"/aws/sagemaker/InferenceComponents/{self.endpoint_name}"
        if self.component is not None:
            return self.component.log_group_name
        return f"/aws/sagemaker/Endpoints/{self.endpoint_name}"

    @property
    def tags(self) -> dict[str, str]:
        own = {"slipway:model": self.config.name}
        return {**self.config.tags, **own, **self.environment.tags}

    @property
    def artifact_place(self) -> ArtifactPlace:
        """Returns bucket, prefix and key of the published files."""
        return places.artifact_place(self.config, self.environment)

    @property
    def vpc(self) -> VpcPlan | None:
        return None if self.is_adapter else vpc_plan(self.config, self.environment)

    @property
    def capture(self) -> CapturePlace | None:
        return capture_place(self.config, self.environment)

    @property
    def rollout(self) -> Rollout | None:
        """Returns how an update moves the traffic; None for SageMaker's default, all at once."""
        return self.config.rollout if self.config.rollout.is_guarded else None

    @property
    def watched_stacks(self) -> tuple[str, ...]:
        """Returns the stacks whose alarms undo an update of the endpoint or of copies on it."""
        watches = self.rollout is not None and bool(self.rollout.rollback_alarms)
        of_guests = (stack for guest in self.guests for stack in guest.watched_stacks)
        return (*((self.stack_name,) if watches else ()), *of_guests)

    @property
    def at_max_capacity(self) -> int | None:
        """Returns the instances or copies whose number raises an alarm; None without the alarm."""
        if not self.config.alarms.at_max_capacity:
            return None
        if self.component is not None:
            return self.component.settings.alarming_count
        scaling = self.config.autoscaling
        return None if scaling is None else scaling.alarming_count

    @property
    def every_variant(self) -> tuple[VariantPlan, ...]:
        """Returns the production variants, and the shadow variant if there is one."""
        return self.variants if self.shadow is None else (*self.variants, self.shadow)

    @property
    def every_served(self) -> tuple[ServedModel, ...]:
        """Returns what is served: the endpoint's model, and those of variants and types."""
        return (self, *self.own_models.values())

    @property
    def own_models(self) -> dict[str, ServedModel]:
        """Returns the models that variants and fallback types have of their own, by name."""
        both = (*self.every_variant, *self.overrides)
        return {each.name: each.own for each in both if each.own is not None}

    @property
    def every_image(self) -> tuple[ImagePlan, ...]:
        guests = (guest.image for guest in self.guests)
        return (*(each.image for each in self.every_served), *guests)

    def served_by(self, variant: VariantPlan) -> ServedModel:
        """Returns the plan itself, or the variant's own model if its container is another one."""
        own = variant.own
        return self if own is None or own.container == self.container else own

    @property
    def overriding(self) -> tuple[VariantPlan, ...]:
        """Returns the overrides whose container is another one than the endpoint's."""
        return tuple(each for each in self.overrides if self.served_by(each) is not self)

    @property
    def shares_by_weight(self) -> bool:
        return len(self.variants) > 1

    @property
    def max_instance_count(self) -> int:
        """Returns the most instances of an endpoint that hosts copies, its guests' included.

        Raises:
            ValueError: the endpoint hosts no copies.
        """
        if self.component is None:
            raise ValueError(f"the endpoint of {self.config.name} hosts no copies")
        return most_instances(self.component, self.guests)

    @property
    def dashboard_name(self) -> str | None:
        """Returns the name of the dashboard, which is the only one in all regions of an account."""
        if self.host is not None or not self.config.endpoint.dashboard:
            return None
        return f"{self.stack_name}-{self.environment.region}"

    @property
    def role_parameter(self) -> str:
        """Returns the name of the parameter in SSM with the role of an endpoint that has guests."""
        model = self.host or self.config.name
        return f"{self.environment.parameter_prefix}models/{model}/execution-role-arn"
