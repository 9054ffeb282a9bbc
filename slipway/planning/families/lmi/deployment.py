"""A deployment of an LMI container: setup, image, settings, memory, package, partitioning."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from slipway.config.sections.artifacts import Compile
from slipway.config.sections.serving.lmi import ALL_ACCELERATORS, LmiServing
from slipway.facts.images import UnknownVersionError
from slipway.facts.instances import Accelerator, InstanceFacts
from slipway.facts.lmi.frameworks import PartitionFramework
from slipway.planning.compiling import CompilePlan
from slipway.planning.deployment import AdapterSlots, Deployment, Fits
from slipway.planning.families.lmi.handlers import brings_handler, image_base
from slipway.planning.families.lmi.partitioning import (
    Partitioning,
    frameworks_of,
    job_arguments,
    job_files,
    job_settings,
    partitioning,
)
from slipway.planning.families.lmi.properties import lmi_properties, variables
from slipway.planning.families.lmi.setup import LmiSetup, is_true, lmi_setup, ordered, rendered
from slipway.planning.memory_estimate import Layout, layout_over_cores
from slipway.planning.plan import ImagePlan, PartitionPlan
from slipway.planning.sizes import startup_timeout_seconds

# The config's names of families, where Hugging Face's `model_type` is another.
_MODEL_TYPES = {"xlm_roberta": "xlm-roberta"}
# vLLM's own default of `gpu_memory_utilization`, and lmi_options.json's.
_VLLM_SHARE = 0.9
# A container with a package copies the weights, then reads the copy into the accelerators.
_READS_OF_A_COPY = 2
_LORA, _RANK = "enable_lora", "max_lora_rank"
# SageMaker's header of adapters (djl-serving ec6f1a15, 2024-11), and the adapters of the handler
# that has no rolling batch (e437d44c, 2025-10).
_ADAPTERS_SINCE = {False: (0, 31, 0), True: (0, 35, 0)}
# The image keeps both in the home directory, which cannot be written to.
_CACHE_VARIABLES = ("HUGGINGFACE_HUB_CACHE", "TRANSFORMERS_CACHE")
_CACHE_DIRECTORY = "/tmp"  # noqa: S108 - a path in the container, the only one that it may write to


def fits_key_value_heads(degree: int, heads: int) -> bool:
    """Returns whether an engine can split key/value heads over GPUs, or copy them to each equally.

    Source: vLLM's attention layers (`assert total_num_kv_heads % tp_size == 0`, else the reverse).
    """
    return heads % degree == 0 or degree % heads == 0


class Lmi(Deployment):
    is_compiled_on_cpu = False
    base_of = staticmethod(image_base)
    without_target = (
        "nothing can be partitioned for it",
        "Choose another type, or remove `compile`.",
    )
    accelerator_noun = "accelerators have"
    way_to_adapters = (
        "Set the option `enable_lora: true`. Only vLLM on `framework: djl-lmi` has it, from 0.31.0 "
        "with `rolling_batch: vllm`, and from 0.35.0 without."
    )

    @cached_property
    def serving(self) -> LmiServing:
        """Returns the config's section, with a number for `tensor_parallel_degree: max`."""
        given = self.section(LmiServing)
        if given.tensor_parallel_degree != ALL_ACCELERATORS:
            return given
        accelerator = self.instance.accelerator
        # On Neuron devices a degree counts cores.
        parts = (accelerator.neuron_cores or accelerator.count) if accelerator else 1
        degree = max(1, parts // given.pipeline_parallel_degree)
        return given.model_copy(update={"tensor_parallel_degree": degree})

    @cached_property
    def setup(self) -> LmiSetup:
        """Returns which handler answers requests; `UnknownVersionError` without such an image."""
        return lmi_setup(self.serving)

    @property
    def is_known(self) -> bool:
        try:
            return self.setup is not None
        except UnknownVersionError:
            return False

    @cached_property
    def frameworks(self) -> tuple[PartitionFramework, ...]:
        """Returns what may partition the model; none for a model.py of the user's own."""
        return frameworks_of(self.setup)

    @cached_property
    def partitioning(self) -> Partitioning | None:
        """Returns what partitions weights ahead of time; None where nothing does."""
        return partitioning(self.setup)

    @property
    def model_type(self) -> str | None:
        """Returns the family as Hugging Face's `model_type` says it; None where it is not said."""
        family = self.config.model.family
        return None if family == "other" else _MODEL_TYPES.get(family, family)

    @property
    def image_family(self) -> str | None:
        return self.container if self.serving.image == "built" else None

    @property
    def aws_image_name(self) -> tuple[str, str]:
        return self.serving.framework, self.serving.version

    def properties(self, weights_uri: str | None = None) -> dict[str, str]:
        """Returns the keys and values that tell the server how to serve.

        The container copies the weights' files of an S3 prefix; None if they are in the model's
        directory.
        """
        loading = self.loading_properties
        return lmi_properties(self.setup, self.loading_timeout_seconds, weights_uri, loading)

    @property
    def loading_properties(self) -> dict[str, str]:
        """Returns the settings with which partitioned weights are loaded; empty for others."""
        return self.partitioning.loading if self.is_compiled and self.partitioning else {}

    serving_properties = properties

    def container_environment(self) -> dict[str, str]:
        """Returns the variables; they hold all settings where no file does."""
        return self.environment_with(has_settings=self.configured_by_environment)

    def environment_with(self, *, has_settings: bool) -> dict[str, str]:
        """Returns the variables, with the settings where no file in the model data has them."""
        in_home = not self.setup.version.weights.cache_directory
        caches = dict.fromkeys(_CACHE_VARIABLES, _CACHE_DIRECTORY) if in_home else {}
        told = variables(self.properties()) if has_settings else {}
        return {**caches, **told, **self.serving.environment}

    @property
    def loading_timeout_seconds(self) -> int:
        """Returns how long the server lets the model load, at most as long as SageMaker does."""
        return self.serving.model_loading_timeout_seconds or startup_timeout_seconds(self)

    @property
    def adapter_slots(self) -> AdapterSlots | None:
        """Returns what `enable_lora` has vLLM load; another engine knows no such option.

        Sources: vllm/config/lora.py, whose `max_lora_rank` is 16 and `max_loras` 1, and the
        defaults of DJL Serving's rolling batch, which lmi_options.json has.
        """
        options, known = self.serving.options, self.setup.options
        since = _ADAPTERS_SINCE[self.setup.handler == "vllm_async"]
        is_able = ordered(self.serving.version) >= since and known.keys() >= {_LORA, _RANK}
        if not is_able or not is_true(options.get(_LORA)):
            return None

        def number(name: str, otherwise: int) -> int:
            default = known[name].default if name in known else None
            return int(options.get(name, default or otherwise))

        ranks = tuple(int(each) for each in known[_RANK].allowed or ())
        return AdapterSlots(number(_RANK, 16), number("max_loras", 1), ranks)

    def memory_layout(self, instance: InstanceFacts, accelerator: Accelerator) -> Layout | None:
        """Returns copies over `tensor_parallel_degree` x `pipeline_parallel_degree` accelerators.

        There are as many copies as the instance has room for, none sharing an accelerator. On
        Neuron devices both degrees count cores, and the cores of a device share its memory.
        """
        tensor = self.serving.tensor_parallel_degree
        pipeline = self.serving.pipeline_parallel_degree
        parts = tensor * pipeline
        if accelerator.kind == "neuron":
            copies = max(1, (accelerator.neuron_cores or 0) // parts)
            return layout_over_cores(accelerator, parts, copies)
        if accelerator.kind != "gpu":
            return None
        return Layout(
            per_copy=parts,
            copies=max(1, accelerator.count // parts),
            weights_share=1 / parts,
            tensor=tensor,
            pipeline=pipeline,
        )

    @property
    def cached_tokens(self) -> int | str:
        """Returns the tokens that the configured batch would want; 0 for an encoder.

        vLLM's cache is the part of its share that weights and activations leave, and requests wait
        if it is full. So this is not what is allocated.
        """
        serving = self.serving
        if self.is_encoder:
            return 0
        rolls = self.is_known and self.setup.rolls
        sequences = serving.max_rolling_batch_size if rolls else serving.max_batch_size
        if sequences is None:
            return "`max_rolling_batch_size` is not given"
        if serving.max_input_tokens is None or serving.max_new_tokens is None:
            return "`max_input_tokens` and `max_new_tokens` are not both given"
        return sequences * (serving.max_input_tokens + serving.max_new_tokens)

    @property
    def caches_in_fp8(self) -> bool:
        return rendered(self.serving.options.get("kv_cache_dtype", "")).startswith("fp8")

    @property
    def memory_share(self) -> float:
        """Returns the share of each GPU that vLLM allocates when it starts, or 1."""
        if self.is_encoder or not self._allocates_ahead:
            return 1.0
        value = self.serving.options.get("gpu_memory_utilization", _VLLM_SHARE)
        try:
            share = float(value)
        except ValueError:
            share = 0.0
        # What is no share is the options' rule to refuse.
        return share if 0 < share <= 1 else _VLLM_SHARE

    @property
    def _allocates_ahead(self) -> bool:
        """Whether vLLM runs the model, or lmi-dist, which is made of it.

        djl-lmi takes one of them where the config does not say.
        """
        serving = self.serving
        if serving.framework == "djl-neuronx":
            return False
        if serving.rolling_batch in (None, "auto"):
            # Batches of the server's own turn the rolling batch off.
            is_plain = not brings_handler(serving) and serving.max_batch_size == 1
            return serving.framework == "djl-lmi" and is_plain
        return serving.rolling_batch in ("vllm", "lmi-dist")

    @property
    def quantization(self) -> str | None:
        options = self.serving.options
        for key in ("quantize", "quantization"):
            if options.get(key) not in (None, "", "None"):
                return str(options[key])
        for key, method in (("load_in_4bit", "bitsandbytes4"), ("load_in_8bit", "bitsandbytes8")):
            if is_true(options.get(key)):
                return method
        return None

    def other_settings(self, instance: InstanceFacts) -> Iterator[tuple[str, Deployment]]:
        """Yields higher tensor parallel degrees that the instance has and the heads divide into."""
        accelerator = instance.accelerator
        if accelerator is None:
            return
        serving, heads = self.serving, self.config.model.attention_heads
        groups = self.config.model.key_value_heads
        if self.is_known and self.setup.pads_heads:
            heads = groups = None
        # On Neuron devices a degree counts cores.
        parts = accelerator.neuron_cores or accelerator.count
        most = parts // serving.pipeline_parallel_degree
        for degree in range(serving.tensor_parallel_degree + 1, most + 1):
            if groups is not None and not fits_key_value_heads(degree, groups):
                continue
            # No accelerator is left over.
            if most % degree == 0 and (heads is None or heads % degree == 0):
                way = f"raise `tensor_parallel_degree` to {degree}"
                yield way, self.with_serving(tensor_parallel_degree=degree)

    def may_be_spread_over(self, accelerator: Accelerator) -> bool:
        parts = self.serving.tensor_parallel_degree * self.serving.pipeline_parallel_degree
        return parts <= (accelerator.neuron_cores or accelerator.count)

    def suggest_type_and_setting(self, others: list[InstanceFacts], fits: Fits) -> str | None:
        if any(fits(each, other) for other in others for _, each in self.other_settings(other)):
            return "take a type with more accelerators and raise `tensor_parallel_degree`"
        return None

    @property
    def configured_by_environment(self) -> bool:
        return self.deploys_release and not self.copies_weights

    @property
    def copies_weights(self) -> bool:
        return self.serving.configuration == "file"

    @property
    def copies_released_weights(self) -> bool:
        """Returns whether there are weights to copy from S3; a sample is packaged whole."""
        return self.has_code and self.config.artifacts.weights is not None

    @property
    def timeouts_of_copying(self) -> Mapping[str, int]:
        if not self.copies_weights:
            return {}
        return {
            "container_startup_health_check_timeout_seconds": startup_timeout_seconds(self),
            "model_loading_timeout_seconds": self.loading_timeout_seconds,
        }

    @property
    def reads_at_start(self) -> int:
        return _READS_OF_A_COPY if self.copies_weights else 1

    @property
    def settings_in_artifact(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if self.has_code:
            found["directory"] = self.serving.script or self.serving.requirements
            found["properties"] = self.properties("s3://weights/")
        if self.is_compiled and self.partitioning is not None:
            found["framework"] = f"{self.serving.framework} {self.serving.version}"
            found["arguments"] = job_arguments(self.partitioning)
            found["job"] = job_settings(self.partitioning)
        return found

    @property
    def settings_in_older_locks(self) -> dict[str, Any]:
        serving = self.serving
        if serving.configuration == "environment":
            # Variables are in the template: what was published are weights, whatever is set.
            return {"configuration": serving.configuration}
        return {
            "serving": serving.model_dump(mode="json"),
            "model_loading_timeout_seconds": self.loading_timeout_seconds,
        }

    @property
    def asked_partitioning(self) -> Partitioning:
        """Returns what partitions the weights of a config with `compile` that breaks no rule."""
        found = self.partitioning
        if found is None or found.method.refused is not None:
            raise ValueError(f"{self.config.name}: nothing partitions its weights ahead of time")
        return found

    def compile_job(self, compiling: Compile, target: str, serving_image: ImagePlan) -> CompilePlan:
        """Returns the job in which AWS's own image partitions the weights, whichever serves."""
        return CompilePlan.of(
            compiling,
            target,
            self.asked_partitioning.name,
            self.given_image,
            arguments=job_arguments(self.asked_partitioning),
            settings=job_files(self.asked_partitioning),
        )

    @property
    def partition_plan(self) -> PartitionPlan | None:
        compiling = self.config.artifacts.compile
        if compiling is None or not self.is_compiled:
            return None
        return PartitionPlan(
            instance_type=compiling.instance,
            target=self.compile_target or "a GPU that no source knows",
            arguments=job_arguments(self.asked_partitioning),
        )
