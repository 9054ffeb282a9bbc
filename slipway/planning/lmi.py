"""The settings of an LMI container: serving.properties, and the container's variables.

Pure: config and facts in, keys and values out. The rules check whether they go together
(`slipway.planning.rules.lmi`, `slipway.planning.rules.lmi_options`). A key that the version does
not read is left out here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from slipway.config.schema import ModelConfig
from slipway.config.sections.serving import LmiServing, OptionValue
from slipway.facts.lmi import CUSTOM, LmiVersion, OptionFacts, lmi_version
from slipway.planning.lmi_handlers import OurHandler, brings_handler, our_handler
from slipway.planning.lmi_variables import variables
from slipway.planning.timeouts import loading_timeout_seconds

OFF = "disable"
AUTO = "auto"
# What starts where `serving.engine` is not given. TensorRT-LLM left MPI in 0.32.
_ENGINES: Mapping[str, str] = {
    "djl-deepspeed": "DeepSpeed",
    "djl-fastertransformer": "FasterTransformer",
    "djl-lmi": "Python",
    "djl-neuronx": "Python",
    "djl-tensorrtllm": "MPI",
}
_TENSORRT_LLM_WITHOUT_MPI = (0, 32, 0)
# To 0.21 the server has no entry point of its own: these are what later ones take.
_FIRST_ENTRY_POINTS: Mapping[str, str] = {
    "DeepSpeed": "djl_python.deepspeed",
    "FasterTransformer": "djl_python.fastertransformer",
    "Python": "djl_python.huggingface",
}
# Rolling batches of the image's other handler, which DeepSpeed's does not know.
_DEEPSPEED_IMAGE_ENGINES: Mapping[str, str] = {
    "lmi-dist": "MPI",
    "scheduler": "Python",
    "vllm": "Python",
}
# From here on the server turns a rolling batch on by itself, which a model.py does not serve.
_ROLLS_UNLESS_TOLD = (0, 27, 0)
# Calls past `predict_timeout` that a server survives. From 0.30 on its own default is none: after
# one slow request /ping is 500 for good. Before, it was this.
_RETRIES = 10
# Handlers that hand requests to an engine with a rolling batch of its own.
_ASYNCHRONOUS = ("vllm_async", "trtllm_async")
# From here on, the script that builds engines and the handlers pass the precision to TensorRT-LLM
# unchanged. TensorRT-LLM has its own names and builds for no other: "Unsupported dtype: fp16"
# (serving/docker/partition/trt_llm_partition.py of 0.33.0, tensorrt_llm/_utils.py).
_TENSORRT_LLMS_NAMES = (0, 33, 0)
_TENSORRT_LLM = ("tensorrt_llm", "trtllm_async")
_NAMES_OF_PRECISIONS: Mapping[str, str] = {
    "bf16": "bfloat16",
    "fp16": "float16",
    "fp32": "float32",
}
# The image keeps both in the home directory, which cannot be written to.
_CACHE_VARIABLES = ("HUGGINGFACE_HUB_CACHE", "TRANSFORMERS_CACHE")
_CACHE_DIRECTORY = "/tmp"  # noqa: S108 - a path in the container, the only one that it may write to


@dataclass(frozen=True)
class LmiSetup:
    """A config's LMI section with the values that follow from it.

    Args:
        serving: the section.
        version: facts of the image's server.
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
        """Returns framework and version for messages."""
        return f"{self.version.framework} {self.version.version}"

    @property
    def ours(self) -> OurHandler | None:
        """Returns Slipway's handler if Slipway's image answers with it."""
        if self.serving.image == "managed":
            return None
        return our_handler(self.version.framework, self.version.version)

    @property
    def reader(self) -> str:
        """Returns the name of the program that reads the options, for messages."""
        return self.image if self.entry_point is None else f"{self.entry_point} of {self.image}"

    @property
    def is_settled(self) -> bool:
        """Returns whether a handler of the image answers, and not a user's own.

        More is known of the image's handler.
        """
        return self.handler is not None and self.handler != CUSTOM

    @property
    def runs_python(self) -> bool:
        """Returns whether the engine starts Python: some only embed texts, without a handler."""
        return self.engine not in self.version.embedding_engines

    @property
    def devices_per_copy(self) -> int:
        """Returns the accelerators, or NeuronCores, that one copy of the model takes."""
        return self.serving.tensor_parallel_degree * self.serving.pipeline_parallel_degree

    @property
    def is_open(self) -> bool:
        """Returns whether the handler accepts unlisted options, so that they are not errors."""
        return self.handler is None or self.version.is_open(self.handler)

    @cached_property
    def every_option(self) -> Mapping[str, OptionFacts]:
        """Returns the options that the handler reads with any rolling batch.

        It is empty without a handler.
        """
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
        """Returns whether requests join and leave a running batch."""
        return self.rolling_batch not in (None, OFF) or self.handler in _ASYNCHRONOUS

    @cached_property
    def options(self) -> Mapping[str, OptionFacts]:
        """Returns the options that the handler reads with the present rolling batch.

        `auto` may be any rolling batch.
        """
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
        """Returns the precision in the notation of its reader."""
        own_names = ordered(self.version.version) >= _TENSORRT_LLMS_NAMES
        if self.handler in _TENSORRT_LLM and own_names:
            return _NAMES_OF_PRECISIONS.get(self.serving.dtype, self.serving.dtype)
        return self.serving.dtype

    def reads(self, key: str) -> bool:
        """Returns whether an option has an effect, or is passed on to a possible reader."""
        return key in self.options or (self.handler is not None and self.is_open)


def lmi_setup(serving: LmiServing) -> LmiSetup:
    """Returns the setup of an LMI section: which handler answers requests, with which options.

    Raises:
        UnknownVersionError: there is no such image.
    """
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
    entry_point = serving.entry_point or default or _FIRST_ENTRY_POINTS.get(engine)
    handler = version.entry_points.get(entry_point) if entry_point else None
    return LmiSetup(serving, version, engine, entry_point, handler, entry_point == default)


def _engine(serving: LmiServing, version: LmiVersion, batch: str) -> str:
    if serving.engine is not None:
        return serving.engine
    own = _ENGINES[serving.framework]
    if serving.framework == "djl-tensorrtllm" and ordered(serving.version) >= (
        _TENSORRT_LLM_WITHOUT_MPI
    ):
        own = "Python"
    if brings_handler(serving):
        return own
    if serving.framework == "djl-deepspeed" and batch in _DEEPSPEED_IMAGE_ENGINES:
        return _DEEPSPEED_IMAGE_ENGINES[batch]
    own_entry_point = version.default_entry_point(own, rolling_batch=batch)
    if serving.entry_point not in (None, own_entry_point or _FIRST_ENTRY_POINTS.get(own)):
        return "Python"
    return own


def ordered(version: str) -> tuple[int, ...]:
    """Returns a version in a form that can be compared."""
    return tuple(int(part) for part in version.split("."))


def lmi_properties(
    config: ModelConfig, weights_uri: str | None, loading: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Returns the keys and values of serving.properties, in the order of the file.

    Values are in the form that the server parses. The writer of the file adds the escapes of Java's
    properties format.

    Args:
        config: a config that breaks no rule.
        weights_uri: S3 prefix of the weights' files, which the container copies; None if they are
            in the model's directory.
        loading: settings with which parts of weights are loaded; None for unpartitioned weights.

    Raises:
        UnknownVersionError: there is no such image.
    """
    serving = _serving(config)
    setup = lmi_setup(serving)
    version = setup.version
    properties = {"engine": setup.engine}
    if setup.entry_point is not None and not setup.entry_point_is_default:
        properties["option.entryPoint"] = setup.entry_point
    if version.weights.s3 and weights_uri is not None:
        properties[f"option.{version.weights.s3[0]}"] = weights_uri
    properties |= _handler_properties(setup)
    properties |= loading or {}
    properties |= _batch_properties(setup)
    if "job_queue_size" in version.server_keys:
        properties["job_queue_size"] = str(serving.max_queue_length)
    retries = version.server_keys.get("retry_threshold")
    if retries is not None and retries.default == 0 and setup.handler is not None:
        properties["retry_threshold"] = str(_RETRIES)
    if setup.handler is not None:
        properties["option.predict_timeout"] = str(serving.predict_timeout_seconds)
        properties["option.model_loading_timeout"] = str(loading_timeout_seconds(config))
    for key, value in sorted(serving.options.items()):
        properties[f"option.{key}"] = rendered(value)
    return properties


def _handler_properties(setup: LmiSetup) -> dict[str, str]:
    serving = setup.serving
    properties: dict[str, str] = {}
    if setup.reads("tensor_parallel_degree"):
        # Without it some versions take every accelerator for one copy, and some refuse to start.
        properties["option.tensor_parallel_degree"] = str(serving.tensor_parallel_degree)
    if serving.pipeline_parallel_degree > 1 and setup.reads("pipeline_parallel_degree"):
        properties["option.pipeline_parallel_degree"] = str(serving.pipeline_parallel_degree)
    if setup.reads(setup.dtype_key):
        properties[f"option.{setup.dtype_key}"] = setup.dtype_value
    # `false` is written too: a variable of the container would count otherwise.
    if "trust_remote_code" in setup.options or (
        serving.trust_remote_code and setup.reads("trust_remote_code")
    ):
        properties["option.trust_remote_code"] = rendered(serving.trust_remote_code)
    return properties


def _batch_properties(setup: LmiSetup) -> dict[str, str]:
    serving = setup.serving
    properties: dict[str, str] = {}
    if serving.max_batch_size > 1:
        if "batch_size" in setup.version.server_keys:
            properties["batch_size"] = str(serving.max_batch_size)
            properties["max_batch_delay"] = str(serving.max_batch_delay_milliseconds)
        return properties
    if serving.rolling_batch is not None and setup.reads("rolling_batch"):
        properties["option.rolling_batch"] = serving.rolling_batch
    elif brings_handler(serving) and ordered(serving.version) >= _ROLLS_UNLESS_TOLD:
        properties["option.rolling_batch"] = OFF
    size = serving.max_rolling_batch_size
    if size is not None and setup.rolls and setup.reads("max_rolling_batch_size"):
        properties["option.max_rolling_batch_size"] = str(size)
    return properties


def rendered(value: OptionValue) -> str:
    """Writes a value as the server parses it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def container_environment(config: ModelConfig, *, has_settings: bool = False) -> dict[str, str]:
    """Returns the variables of an LMI container.

    Args:
        config: a config that breaks no rule.
        has_settings: whether the variables say how to serve; if not, a file in the model data does.

    Raises:
        UnknownVersionError: there is no such image.
    """
    serving = _serving(config)
    weights = lmi_version(serving.framework, serving.version).weights
    caches = {} if weights.cache_directory else dict.fromkeys(_CACHE_VARIABLES, _CACHE_DIRECTORY)
    told: dict[str, str] = {}
    if has_settings:
        told = variables(lmi_properties(config, None))
    return {**caches, **told, **serving.environment}


def _serving(config: ModelConfig) -> LmiServing:
    if not isinstance(config.serving, LmiServing):
        raise TypeError(f"{config.name} is not served by LMI but by {config.serving.container}")
    return config.serving
