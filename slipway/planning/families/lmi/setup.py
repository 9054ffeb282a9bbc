"""The setup of an LMI container: which engine and handler answer requests, with which options."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from slipway.config.sections.serving.lmi import LmiServing, OptionValue
from slipway.facts.images import versions
from slipway.facts.instances import Accelerator
from slipway.facts.lmi.options import CUSTOM, OptionFacts
from slipway.facts.lmi.versions import LmiVersion, lmi_version
from slipway.planning.families.lmi.handlers import OurHandler, brings_handler, our_handler

OFF = "disable"
AUTO = "auto"
# The first image with transformers-neuronx 0.8, of Neuron SDK 2.14.
_PADS_SINCE = (0, 24, 0)
# The entry point serves diffusion models by the class of another handler, if this option is there
# (`handle` in djl_python/transformers_neuronx.py).
_NEURON_HANDLER, _DIFFUSION_HANDLER = "transformers_neuronx", "stable_diffusion_inf2"
_DIFFUSION_OPTION = "use_stable_diffusion"
# Handlers that hand requests to an engine with a rolling batch of its own.
_ASYNCHRONOUS = ("vllm_async", "trtllm_async")


@dataclass(frozen=True)
class LmiSetup:
    """A config's LMI section with the values that follow from it.

    Args:
        engine: the value of `engine`, as given or by the framework.
        entry_point: the handler's module; None for a model.py of the user's own, for an engine
            without Python, and if there is none.
        handler: as in `LmiVersion.handlers`; Slipway's is a custom handler. None if the image has
            no handler for this config.
        entry_point_is_default: whether the server takes that entry point by itself.
    """

    serving: LmiServing
    version: LmiVersion
    engine: str
    entry_point: str | None
    handler: str | None
    entry_point_is_default: bool

    @property
    def image(self) -> str:
        return f"{self.version.framework} {self.version.version}"

    @property
    def ours(self) -> OurHandler | None:
        if self.serving.image == "managed":
            return None
        return our_handler(self.version.framework, self.version.version)

    @property
    def reader(self) -> str:
        """Returns the name of the program that reads the options, for messages."""
        return self.image if self.entry_point is None else f"{self.entry_point} of {self.image}"

    @property
    def is_settled(self) -> bool:
        """Returns whether a handler of the image answers, and not a user's own."""
        return self.handler is not None and self.handler != CUSTOM

    @property
    def runs_python(self) -> bool:
        """Returns whether the engine starts Python: some only embed texts, without a handler."""
        return self.engine not in self.version.embedding_engines

    @property
    def devices_per_copy(self) -> int:
        """Returns the accelerators, or NeuronCores, of one copy."""
        return self.serving.tensor_parallel_degree * self.serving.pipeline_parallel_degree

    @property
    def is_for_neuron(self) -> bool:
        """Returns whether the image is for Inferentia 2 and Trainium, and not for GPUs."""
        return self.version.framework == "djl-neuronx"

    @property
    def pads_heads(self) -> bool:
        """Returns whether the engine pads attention heads up to the degree, so that any fits.

        Source: AWS serves Llama-2-7B with its 32 heads on 12 and on 24 NeuronCores
        (sagemaker-python-sdk, JumpStart's meta-textgenerationneuron-llama-2-7b; Neuron SDK 2.14).
        """
        return self.is_for_neuron and ordered(self.version.version) >= _PADS_SINCE

    @property
    def device_name(self) -> str:
        return "NeuronCores" if self.is_for_neuron else "GPUs"

    def devices(self, accelerator: Accelerator | None) -> int | None:
        """Returns how many GPUs or NeuronCores the server can use; None where it knows none.

        Inferentia 1 has another compiler.
        """
        if accelerator is None:
            return None
        if not self.is_for_neuron:
            return accelerator.count if accelerator.is_nvidia_gpu else None
        return None if accelerator.has_core_pipeline else accelerator.neuron_cores

    @property
    def is_open(self) -> bool:
        """Returns whether the handler accepts unlisted options, so that they are not errors."""
        return self.handler is None or self.version.is_open(self.handler)

    @cached_property
    def every_option(self) -> Mapping[str, OptionFacts]:
        """Returns the options that the handler reads with any rolling batch; none without one."""
        return {} if self.handler is None else self.version.options_for(self.handler)

    @cached_property
    def rolling_batch(self) -> str | None:
        """Returns the value that applies; `disable` and None both mean none.

        DJL Serving turns the rolling batch off if it forms batches itself.
        """
        if self.serving.rolling_batch is not None:
            return self.serving.rolling_batch
        if self.serving.max_batch_size > 1:
            return OFF
        facts = self.every_option.get("rolling_batch")
        return None if facts is None or facts.default is None else str(facts.default)

    @property
    def rolls(self) -> bool:
        return self.rolling_batch not in (None, OFF) or self.handler in _ASYNCHRONOUS

    @cached_property
    def options(self) -> Mapping[str, OptionFacts]:
        """Returns the options that the handler reads with the rolling batch, or any for `auto`."""
        if self.handler is None or self.rolling_batch == AUTO:
            return self.every_option
        return self.version.options_for(self.handler, self.rolling_batch or OFF)

    @property
    def dtype_key(self) -> str:
        """Returns the handler's key for the precision, which had another name at first."""
        return (
            "data_type" if "dtype" not in self.options and "data_type" in self.options else "dtype"
        )

    @property
    def dtype_value(self) -> str:
        return self.version.precision_name(self.handler, self.serving.dtype)

    def is_server_key(self, key: str) -> bool:
        """Returns whether the server itself reads a key, which then has no `option.`."""
        return key in self.version.server_keys and key not in self.every_option

    def reads(self, key: str) -> bool:
        """Returns whether an option has an effect, or is passed on to a possible reader."""
        return key in self.options or (self.handler is not None and self.is_open)


def lmi_setup(serving: LmiServing) -> LmiSetup:
    """Returns the setup of an LMI section; an `UnknownVersionError` if there is no such image."""
    version = lmi_version(serving.framework, serving.version)
    # What LmiConfigRecommender of the server makes of a file without the key.
    batch = serving.rolling_batch or (OFF if serving.max_batch_size > 1 else AUTO)
    engine = _engine(serving, version, batch)
    if engine in version.embedding_engines:
        return LmiSetup(serving, version, engine, None, None, entry_point_is_default=False)
    if brings_handler(serving):
        ours = our_handler(serving.framework, serving.version)
        module = ours.module if ours is not None and serving.image == "built" else None
        return LmiSetup(serving, version, engine, module, CUSTOM, entry_point_is_default=False)
    default = version.default_entry_point(engine, rolling_batch=batch)
    entry_point = serving.entry_point or default or version.first_entry_point(engine)
    handler = version.entry_points.get(entry_point) if entry_point else None
    if handler == _NEURON_HANDLER and _DIFFUSION_OPTION in serving.options:
        handler = _DIFFUSION_HANDLER
    return LmiSetup(serving, version, engine, entry_point, handler, entry_point == default)


def versions_whose(framework: str, fits: Callable[[LmiVersion], bool]) -> list[str]:
    """Returns the versions of a framework's image whose server fits, in order."""
    return [name for name in versions(framework) if fits(lmi_version(framework, name))]


def _engine(serving: LmiServing, version: LmiVersion, batch: str) -> str:
    if serving.engine is not None:
        return serving.engine
    own, rolling = version.default_engine(), version.default_engine(batch)
    if brings_handler(serving) or rolling != own:
        return own if brings_handler(serving) else rolling
    default = version.default_entry_point(own, rolling_batch=batch)
    if serving.entry_point not in (None, default or version.first_entry_point(own)):
        return "Python"
    return own


def ordered(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def rendered(value: OptionValue) -> str:
    """Writes a value as the server parses it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def is_true(value: OptionValue | None) -> bool:
    return value is not None and rendered(value).lower() == "true"
