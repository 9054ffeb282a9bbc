"""A deployment: a config in an environment, and what planning derives of both before it decides.

`Deployment` has what every family needs. Each serving family has a subclass, which answers for its
container. Rules, advice, memory, image and plan ask the deployment. None of them names a family.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self, TypeVar

from slipway.codes.code import Code
from slipway.config.environments import Environment
from slipway.config.schema import ModelConfig
from slipway.config.sections.artifacts import Compile
from slipway.config.sections.base import Section
from slipway.errors import FieldPath, Kind, Problem
from slipway.facts.images import ImageFacts, UnknownImageError, image
from slipway.facts.instances import Accelerator, InstanceFacts, instance_types
from slipway.planning.compiling import CPU, CompilePlan, compiler_image
from slipway.planning.directory import Directory, DirectoryFindings, PublishedDirectory
from slipway.planning.memory_estimate import Layout, MemoryEstimate, NeuronPlacement
from slipway.planning.placements import SERVERLESS, Placement, placements_of
from slipway.planning.plan import ImageBase, ImagePlan, PartitionPlan
from slipway.planning.texts import TextProtocol

SectionT = TypeVar("SectionT", bound=Section)
ENCODERS = ("bert", "distilbert", "roberta", "xlm_roberta")


@dataclass(frozen=True)
class AdapterSlots:
    """The LoRA adapters that an engine loads: the highest rank, and the adapters of one batch."""

    max_rank: int
    in_batch: int
    ranks: tuple[int, ...] = ()

    def rank_for(self, rank: int) -> int:
        """Returns the lowest setting that takes a rank."""
        return min((each for each in self.ranks if each >= rank), default=rank)


@dataclass(frozen=True)
class Deployment(ABC):
    """A config, the instance types it names, and where it is to run.

    `variant` is the variant, or the fallback type, whose own model it is of; None for the
    endpoint's model.
    """

    config: ModelConfig
    placements: tuple[Placement, ...]
    environment: Environment
    variant: str | None = None

    runs_serverless: ClassVar[bool] = False
    """Whether the container may run on a processor alone, and so on a serverless endpoint."""
    needs_accelerator: ClassVar[bool] = True
    """Whether the family's own rules refuse a type without an accelerator that it can use."""
    runs_on_arm: ClassVar[bool] = False
    is_compiled_on_cpu: ClassVar[bool] = True
    """Whether the embedded AWS compiles the model for its processor."""
    serves_plain_weights: ClassVar[bool] = False
    """Whether the model data may be the weights, with nothing made of them."""
    text_names: ClassVar[frozenset[str]] = frozenset()
    """Names of files that `check_directory` reads; it is not asked without any."""
    without_target: ClassVar[tuple[str, str]] = (
        "no engine can be built for it",
        "Choose another type, or build the engine yourself and set `artifacts.release`.",
    )
    """Consequence and remedy where no source knows the GPU that a model is compiled for."""
    way_to_adapters: ClassVar[str] = (
        "Only vLLM loads them: name a model with `container: lmi` and `framework: djl-lmi`."
    )
    """Remedy where the engine loads no adapters."""
    base_of: ClassVar[staticmethod[[ImageFacts], ImageBase | None]] = staticmethod(lambda _: None)
    """Returns AWS's image as the base of the container's image; None where it is none."""
    two_bytes: ClassVar[str | None] = None
    """The container's precision of two bytes; None where model and accelerator decide on one."""
    accelerator_noun: ClassVar[str] = "GPU has"
    """What would need more memory, for a remedy."""

    @property
    def name(self) -> str:
        """Returns the model's name for publishing: `CONFIG`, `CONFIG@VARIANT`, `CONFIG@TYPE`."""
        return self.config.name if self.variant is None else f"{self.config.name}@{self.variant}"

    @property
    def instance(self) -> InstanceFacts:
        """Returns the first variant's preferred type."""
        return self.placements[0].instance

    @cached_property
    def instances(self) -> tuple[InstanceFacts, ...]:
        return tuple(dict.fromkeys(placement.instance for placement in self.placements))

    def instances_of(self, variant: str) -> tuple[InstanceFacts, ...]:
        """Returns a variant's types, in order of preference."""
        return tuple(p.instance for p in self.placements if p.variant == variant)

    @cached_property
    def every_placement(self) -> tuple[Placement, ...]:
        """Returns the placements, and those of fallback types with a model of their own."""
        return placements_of(self.config, every_type=True)

    def section(self, kind: type[SectionT]) -> SectionT:
        """Returns the config's serving section as its family knows it; another's is a TypeError."""
        if not isinstance(self.config.serving, kind):
            raise TypeError(f"{self.config.name} is served by the container {self.container}")
        return self.config.serving

    def nvidia_gpus(self) -> Iterator[tuple[Placement, str, str]]:
        """Yields each placement on a known NVIDIA GPU, with its product and compute capability."""
        for placement in self.placements:
            accelerator = placement.instance.accelerator
            if accelerator and accelerator.is_nvidia_gpu and accelerator.compute_capability:
                yield placement, accelerator.product, accelerator.compute_capability

    @property
    def container(self) -> str:
        return self.config.serving.container

    @property
    def region(self) -> str:
        return self.environment.region

    @property
    def deploys_release(self) -> bool:
        """Returns whether the environment deploys the release, and not the sample."""
        return self.environment.artifacts == "release"

    @property
    def is_encoder(self) -> bool:
        """Returns whether the network computes one pass for each text, and keeps no cache."""
        model = self.config.model
        keeps_nothing = model.cached_layers == 0 and model.attention_heads is not None
        return model.family in ENCODERS or keeps_nothing

    def with_serving(self, **changes: Any) -> Self:
        serving = self.config.serving.model_copy(update=changes)
        return replace(self, config=self.config.model_copy(update={"serving": serving}))

    @property
    def image_family(self) -> str | None:
        """Returns FAMILY of the image `slipway/FAMILY` that Slipway builds, or None."""
        return None

    @property
    def aws_image_name(self) -> tuple[str, str] | None:
        """Returns framework and version, as facts/images.json has them, of AWS's image or base."""
        return None

    @cached_property
    def aws_image(self) -> ImageFacts | None:
        """Returns the facts of AWS's image, or of AWS's base of Slipway's image.

        None also if no image of that version or region is known: a rule of its own reports that.
        """
        if self.aws_image_name is None:
            return None
        try:
            return image(*self.aws_image_name, self.region)
        except UnknownImageError:
            return None

    @property
    def given_image(self) -> ImagePlan:
        """Returns the image that exists already, where Slipway builds none."""
        aws = self.aws_image
        if aws is None or aws.account is None:
            raise ValueError(f"{self.config.name}: no rule refused an image that is not published")
        return ImagePlan(aws.account, aws.region, aws.repository, aws.tag)

    @property
    def image_base(self) -> ImageBase:
        """Returns the base of an image that Slipway builds."""
        found = self.base_of(self.aws_image) if self.aws_image else None
        if found is None:
            raise ValueError(f"{self.container} is built on no image that is known")
        return found

    @property
    def cuda_version(self) -> str | None:
        """Returns the CUDA in the image, for example `12.4`; None without CUDA or a source."""
        return self.aws_image.cuda_version if self.aws_image else None

    @property
    def needed_host_image(self) -> str | None:
        """Returns the host image with the driver that the container needs; None for any."""
        return self.aws_image.inference_ami if self.aws_image else None

    @property
    def supported_replacement(self) -> tuple[str, str]:
        """Returns how to call a legacy image, and the words before its living alternative."""
        return "", "The living alternative is"

    @abstractmethod
    def container_environment(self) -> dict[str, str]:
        """Returns the variables of the container, of a config that breaks no rule."""

    def serving_properties(self, weights_uri: str) -> dict[str, str]:
        """Returns serving.properties of a package whose container copies weights; else nothing."""
        return {}

    @property
    def request_timeout_seconds(self) -> int | None:
        """Returns the container's own limit of a request; None where it has none."""
        return getattr(self.config.serving, "request_timeout_seconds", None)

    @property
    def text_protocol(self) -> TextProtocol | None:
        """Returns how `slipway invoke --text` sends texts; None if the model need not take any."""
        return None

    @property
    def adapter_slots(self) -> AdapterSlots | None:
        """Returns which LoRA adapters the engine loads; None if it loads none."""
        return None

    @property
    def dtype(self) -> str | None:
        """Returns the precision of the weights; None if the section has no such field or value."""
        return getattr(self.config.serving, "dtype", None)

    @cached_property
    def memory_estimates(self) -> dict[str, MemoryEstimate | None]:
        """Returns the estimates that `slipway.planning.memory` has made, by instance type."""
        return {}

    @abstractmethod
    def memory_layout(self, instance: InstanceFacts, accelerator: Accelerator) -> Layout | None:
        """Returns how copies of the model lie on accelerators; None where it cannot run there."""

    @property
    @abstractmethod
    def cached_tokens(self) -> int | str:
        """Returns the tokens of a full batch of the longest requests; 0 without a cache.

        A text says what is missing to know them, as half a sentence.
        """

    @property
    def caches_in_fp8(self) -> bool:
        """Returns whether a setting has keys and values kept in one byte each."""
        return False

    @property
    def memory_share(self) -> float:
        """Returns the share of an accelerator's memory that the server may take."""
        return 1.0

    @property
    def quantization(self) -> str | None:
        """Returns the quantisation method of the settings; None if they name none."""
        return None

    def other_settings(self, instance: InstanceFacts) -> Iterator[tuple[str, Deployment]]:
        """Yields changes of one number, the least first, that may make weights fit a type."""
        yield from ()

    def may_be_spread_over(self, accelerator: Accelerator) -> bool:
        """Returns whether a type has the accelerators that one copy is spread over."""
        return True

    def suggest_type_and_setting(self, others: list[InstanceFacts], fits: Fits) -> str | None:
        """Returns a remedy that takes one of other types and another setting; None without any."""
        return None

    @property
    def published_directory(self) -> PublishedDirectory | None:
        """Returns the directory that is the environment's artifact as it is; None without one."""
        sample, release = self.config.artifacts.sample, self.config.artifacts.release
        if self.deploys_release and release is not None:
            field = ("artifacts", "release", "path")
            return PublishedDirectory(field, release.path, release.target)
        if not self.deploys_release and sample is not None:
            # The containers' CPU back ends serve it.
            return PublishedDirectory(("artifacts", "sample", "path"), sample.path, CPU)
        return None

    @property
    def packs_archive(self) -> bool:
        """Returns whether the files are packed: serverless endpoints take no plain ones.

        Source: ModelDataSource of ContainerDefinition in botocore 1.44.5.
        """
        return self.config.endpoint.mode == SERVERLESS

    @property
    def artifact_source(self) -> Section | None:
        """Returns the section that names the artifact's files; None without one."""
        artifacts = self.config.artifacts
        return artifacts.release or artifacts.weights if self.deploys_release else artifacts.sample

    def check_directory(self, directory: Directory) -> DirectoryFindings:
        """Returns what the family finds in `published_directory`, where it is there."""
        return DirectoryFindings()

    @property
    def is_compiled(self) -> bool:
        """Returns whether Slipway compiles the artifact that the environment deploys."""
        sources = self.config.artifacts
        asks = None not in (sources.weights, sources.compile) and sources.release is None
        has_target = self.is_compiled_on_cpu or not self.environment.is_local
        return self.deploys_release and asks and has_target

    @property
    def has_code(self) -> bool:
        """Returns whether the model data is a package of code that copies the weights itself.

        CloudFormation has no AdditionalModelDataSources yet (aws-cdk-lib 2.275, CfnModel), so
        SageMaker cannot bring the weights beside the package.
        """
        return self.deploys_release and self.copies_weights

    @property
    def configured_by_environment(self) -> bool:
        """Returns whether the model data is the weights alone, and variables hold all settings."""
        return False

    @property
    def model_data_object(self) -> str | None:
        """Returns the one file that is the model data; None for all files of the artifact."""
        return getattr(self.config.serving, "model_data_object", None)

    @property
    def settings_in_artifact(self) -> dict[str, Any]:
        """Returns the settings of `serving` that change the bytes of the artifact, as data."""
        return self.config.serving.model_dump(mode="json")

    @property
    def settings_in_older_locks(self) -> dict[str, Any]:
        """Returns the settings that the digest of an older lock is of."""
        return {"serving": self.config.serving.model_dump(mode="json")}

    @property
    def copies_weights(self) -> bool:
        """Returns whether the container of a release copies the weights itself, while it starts."""
        return False

    @property
    def timeouts_of_copying(self) -> Mapping[str, int]:
        """Returns the limits, in seconds by field, of a start that copies weights; else nothing."""
        return {}

    @property
    def reads_at_start(self) -> int:
        """Returns how often a start reads the weights before /ping answers; 0 if it is quick."""
        return 0

    @property
    def needs_compiled_model(self) -> bool:
        """Returns whether the container serves compiled models, and no checkpoint."""
        return False

    @property
    def builds_engine(self) -> bool:
        """Returns whether the model is a TensorRT engine, which fits one compute capability."""
        return False

    @property
    def compile_target(self) -> str | None:
        """Returns the target of types and compiler, as rules see to; None if no source says."""
        if self.environment.is_local or self.config.endpoint.mode == SERVERLESS:
            return CPU
        compiling = self.config.artifacts.compile
        hosts = [instance_types()[compiling.instance]] if compiling else []
        capabilities = (each.compute_capability for each in (*self.instances, *hosts))
        return next((capability for capability in capabilities if capability), None)

    def compile_plan(self, serving_image: ImagePlan) -> CompilePlan | Problem:
        """Returns the training job of a config with `compile`, or why there can be none."""
        compiling, target = self.config.artifacts.compile, self.compile_target
        if compiling is None:
            raise ValueError(f"{self.config.name} has nothing to compile")
        if target is None:
            unknown = f"the compute capability of the GPU of {self.instances[0].name} is not known"
            so, remedy = self.without_target
            message, field = f"{unknown}, so {so}", ("endpoint", "instances")
            return problem(Code.UNKNOWN_COMPUTE_CAPABILITY, message, remedy, field)
        return self.compile_job(compiling, target, serving_image)

    def compile_job(self, compiling: Compile, target: str, serving_image: ImagePlan) -> CompilePlan:
        """Returns the job that exports graphs, and compiles them for an accelerator."""
        return CompilePlan.of(
            compiling,
            target,
            "onnx" if target == CPU else self.compiler,
            compiler_image(serving_image),
            hyperparameters={**self.hyperparameters, "target": target},
        )

    @property
    def compiler(self) -> str:
        """Returns what compiles graphs for an accelerator, for example `tensorrt 10.13`."""
        raise ValueError(f"{self.config.name}: no compiler is known for {self.instance.name}")

    @property
    def hyperparameters(self) -> dict[str, str]:
        """Returns what the container's `compile` command is told, beside the target."""
        raise ValueError(f"{self.config.name}: nothing compiles for the container {self.container}")

    @property
    def partition_plan(self) -> PartitionPlan | None:
        """Returns how weights were partitioned; None where they are served as they are."""
        return None

    @property
    def neuron_placement(self) -> NeuronPlacement | None:
        """Returns the layout on the preferred type's NeuronCores; None without any."""
        return None


Rule = Callable[[Deployment], Iterator[Problem]]
Fits = Callable[[Deployment, InstanceFacts], bool]


def problem(code: Code, message: str, remedy: str, field: FieldPath) -> Problem:
    """Makes the problem of values that do not go together."""
    return Problem(code, Kind.COMPATIBILITY, message, remedy, field)
