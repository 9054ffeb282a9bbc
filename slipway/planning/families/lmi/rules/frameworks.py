"""Rules about the framework that partitions the model in an LMI image, and its limits.

The server reads the degrees, batches and options of every framework and leaves the rest to its
handler. The handler may refuse them after the download, fail at the first request, or ignore them
(facts: lmi_frameworks).
"""

from collections.abc import Callable, Iterator

from slipway.codes.code import Code
from slipway.config.sections.serving.lmi import OptionValue
from slipway.errors import Problem
from slipway.facts.images import versions
from slipway.facts.lmi.frameworks import (
    PartitionFramework,
    images_with,
    partition_framework,
)
from slipway.planning.deployment import problem
from slipway.planning.families.lmi.deployment import Lmi
from slipway.planning.families.lmi.partitioning import frameworks_of, may_roll
from slipway.planning.families.lmi.setup import OFF, LmiSetup, rendered

_ACCELERATE = "accelerate"
_STREAMING = "enable_streaming"
_PLACES = "device_map"
_BITSANDBYTES = ("bitsandbytes4", "bitsandbytes8")
_LOADED_IN = ("load_in_4bit", "load_in_8bit")


def pipeline_is_possible(lmi: Lmi) -> Iterator[Problem]:
    """The server counts the stages' GPUs whatever runs on them."""
    setup = lmi.setup
    if not setup.reads("pipeline_parallel_degree"):
        return
    degree, frameworks = setup.serving.pipeline_parallel_degree, lmi.frameworks
    if degree == 1 or not frameworks:
        return
    if all(each.pipeline_parallel.value == "no" for each in frameworks):
        remedy = "Remove `pipeline_parallel_degree`, or raise `tensor_parallel_degree`."
        if _is_accelerate(frameworks):
            remedy = "Remove it, and set `tensor_parallel_degree` to the number of GPUs."
        yield problem(
            Code.LMI_PIPELINE_PARALLELISM,
            f"{_named(frameworks)} of {setup.image} has no pipeline parallelism; the degree is "
            f"{degree}",
            remedy,
            ("serving", "pipeline_parallel_degree"),
        )


def layers_are_laid_out(lmi: Lmi) -> Iterator[Problem]:
    """Accelerate has whole layers on several GPUs where it is told so, and says nothing if not."""
    setup, frameworks = lmi.setup, lmi.frameworks
    if not _is_accelerate(frameworks):
        return
    degree, layers = setup.serving.tensor_parallel_degree, frameworks[0].layers_over_devices.value
    if degree == 1:
        return
    if layers == "no":
        message = f"{setup.reader} loads the model on one GPU; the degree is {degree}"
        remedy = "Set `tensor_parallel_degree: 1`, or use a later version."
    elif _has_no_places(setup, layers):
        message = (
            f"without a rolling batch {setup.reader} loads the model on one GPU of {degree}, "
            "whatever the degree"
        )
        remedy = (
            "Add `device_map: auto` to `options`, which lays whole layers on them, or set "
            "`tensor_parallel_degree: 1`."
        )
    else:
        return
    yield problem(Code.LMI_DEVICE_MAP, message, remedy, ("serving", "tensor_parallel_degree"))


def quantized_layers_have_places(lmi: Lmi) -> Iterator[Problem]:
    """The library bitsandbytes wants a map of devices, which the degree once made."""
    setup, frameworks = lmi.setup, lmi.frameworks
    if not _is_accelerate(frameworks):
        return
    if not _has_no_places(setup, frameworks[0].layers_over_devices.value):
        return
    for key, value in setup.serving.options.items():
        quantizes = key == "quantize" and value in _BITSANDBYTES
        if quantizes or (key in _LOADED_IN and _is_on(value)):
            yield problem(
                Code.LMI_DEVICE_MAP,
                f"without a rolling batch {setup.reader} loads with bitsandbytes only by a "
                "`device_map`",
                "Add `device_map: auto` to `options`.",
                ("serving", "options", key),
            )


def streaming_option_has_an_effect(lmi: Lmi) -> Iterator[Problem]:
    """A rolling batch streams by other means, and passes over the option."""
    setup, frameworks = lmi.setup, lmi.frameworks
    if not frameworks or not _streams(setup):
        return
    plain = frameworks_of(setup, rolling_batch=OFF)
    without_one = any(each.streaming.value == _STREAMING for each in plain)
    if without_one and not may_roll(setup):
        return
    ways = [each.rolling_streaming.value for each in frameworks] if setup.rolls else []
    remedy = "Remove it."
    if "stream" in ways:
        remedy = 'Remove it: a request with `"stream": true` is streamed.'
    elif "output_formatter" in ways and setup.reads("output_formatter"):
        remedy = "Remove it, and set `output_formatter: jsonlines`."
    condition = "with a rolling batch " if without_one else ""
    yield problem(
        Code.LMI_STREAMING,
        f"{condition}{setup.reader} does not stream by `{_STREAMING}`",
        remedy,
        ("serving", "options", _STREAMING),
    )


def streams_share_no_batch(lmi: Lmi) -> Iterator[Problem]:
    """The stream of a batch would hold everybody's tokens; handlers refuse, or mix them."""
    setup, frameworks = lmi.setup, lmi.frameworks
    if setup.serving.max_batch_size == 1 or not _streams(setup):
        return
    if any(
        each.streaming.value == _STREAMING and each.server_batches.value == "yes"
        for each in frameworks
    ):
        yield problem(
            Code.LMI_BATCH_REFUSED,
            f"{setup.reader} cannot stream to the {setup.serving.max_batch_size} requests of a "
            "batch",
            f"Set `max_batch_size: 1`, or remove `{_STREAMING}`.",
            ("serving", "max_batch_size"),
        )


def batches_are_answered(lmi: Lmi) -> Iterator[Problem]:
    """Refuses batches that a handler answers with one answer.

    Such a batch fails for every client, and only when two requests meet.
    """
    setup, frameworks = lmi.setup, lmi.frameworks
    if "batch_size" not in setup.version.server_keys or not frameworks:
        return
    size = setup.serving.max_batch_size
    if size == 1 or setup.serving.rolling_batch not in (None, OFF):
        return
    if all(each.server_batches.value == "no" for each in frameworks):
        able = _versions_whose(lmi, lambda each: each.server_batches.value == "yes")
        other = f" Version {able[-1]} answers batches." if able else ""
        if any(each.rolls_always or each.rolling_batches for each in frameworks):
            remedy = "Remove `max_batch_size`: requests share its rolling batch."
        else:
            remedy = "Set `max_batch_size: 1`; one request may hold several inputs."
        yield problem(
            Code.LMI_BATCH_REFUSED,
            f"{setup.reader} takes one request at a time: a batch of up to {size} would fail for "
            "all of them",
            remedy + other,
            ("serving", "max_batch_size"),
        )


def rolling_batch_is_on_where_needed(lmi: Lmi) -> Iterator[Problem]:
    """TensorRT-LLM's other way of running a model is for few of them."""
    setup, family = lmi.setup, lmi.model_type
    if family is None or setup.rolling_batch not in (None, OFF):
        return
    for framework in lmi.frameworks:
        types = framework.model_types_without_rolling_batch
        if types is not None and family not in types:
            field = "max_batch_size" if setup.serving.max_batch_size > 1 else "rolling_batch"
            message = f"without a rolling batch {setup.reader} loads only {', '.join(types)}"
            remedy = f"Remove `{field}`."
            yield problem(Code.LMI_FAMILY, message, remedy, ("serving", field))


def framework_runs_on_neuron(lmi: Lmi) -> Iterator[Problem]:
    """The image for Inferentia 2 and Trainium holds modules that know GPUs alone."""
    setup, frameworks = lmi.setup, lmi.frameworks
    if not setup.is_for_neuron or not frameworks:
        return
    if all(each.neuron.value == "no" for each in frameworks):
        own = setup.version.default_entry_point()
        message = f"{setup.reader} loads the model on a GPU, and Inferentia and Trainium have none"
        remedy = f"Remove `entry_point`: the image's own is `{own}`."
        yield problem(Code.LMI_ACCELERATOR, message, remedy, ("serving", "entry_point"))


def shards_are_not_quantized(lmi: Lmi) -> Iterator[Problem]:
    """DeepSpeed quantizes what it loads from a checkpoint of Hugging Face's form."""
    setup = lmi.setup
    given = set(setup.serving.options) & set(setup.options)
    if setup.handler == "deepspeed" and {"checkpoint", "quantize"} <= given:
        message = f"{setup.reader} does not quantize the shards that `checkpoint` names"
        remedy = "Remove `quantize` or `checkpoint`."
        yield problem(Code.LMI_OPTION_CONFLICT, message, remedy, ("serving", "options", "quantize"))


def compiling_has_a_command(lmi: Lmi) -> Iterator[Problem]:
    """Refuses `compile` for a framework that partitions no weights ahead of time."""
    setup, frameworks = lmi.setup, lmi.frameworks
    if lmi.config.artifacts.compile is None or not frameworks:
        return
    if all(each.ahead_of_time is None for each in frameworks):
        able = _versions_whose(lmi, lambda each: each.ahead_of_time is not None)
        other = f" Or use version {able[-1]}, which does." if able else ""
        message = f"{_named(frameworks)} of {setup.image} partitions no weights ahead of time"
        remedy = f"Remove `compile`: they are split when they are loaded.{other}"
        yield problem(Code.LMI_NO_PARTITION, message, remedy, ("artifacts", "compile"))


def _named(frameworks: tuple[PartitionFramework, ...]) -> str:
    return " or ".join(each.title for each in frameworks)


def _is_accelerate(frameworks: tuple[PartitionFramework, ...]) -> bool:
    return [each.name for each in frameworks] == [_ACCELERATE]


def _has_no_places(setup: LmiSetup, layers: str) -> bool:
    return layers == _PLACES and _PLACES not in setup.serving.options and not may_roll(setup)


def _streams(setup: LmiSetup) -> bool:
    value = setup.serving.options.get(_STREAMING)
    return value is not None and rendered(value).lower() != "false" and _STREAMING in setup.options


def _is_on(value: OptionValue) -> bool:
    return rendered(value).lower() == "true"


def _versions_whose(lmi: Lmi, fits: Callable[[PartitionFramework], bool]) -> list[str]:
    """Returns the versions of the image that have the same frameworks, each of them fitting."""
    names = [each.name for each in lmi.frameworks]
    return [
        version
        for version in versions(lmi.setup.version.framework)
        if all(
            images_with(name, version) and fits(partition_framework(name, version))
            for name in names
        )
    ]
