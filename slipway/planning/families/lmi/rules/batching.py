"""Rules about LMI's batches, and about the framework that partitions the model, and its limits.

DJL Serving forms batches itself or leaves it to a rolling batch, which requests join and leave. It
reads the degrees, batches and options of every framework and leaves the rest to its handler. The
handler may refuse them after the download, fail at the first request, or ignore them (facts: lmi,
lmi_frameworks).
"""

from collections.abc import Callable, Iterator

from slipway.codes.code import Code
from slipway.errors import Problem, did_you_mean
from slipway.facts.images import frameworks, versions
from slipway.facts.lmi.frameworks import (
    PartitionFramework,
    images_with,
    partition_framework,
)
from slipway.facts.lmi.versions import lmi_version
from slipway.planning.deployment import problem
from slipway.planning.families.lmi.deployment import Lmi
from slipway.planning.families.lmi.partitioning import frameworks_of, may_roll
from slipway.planning.families.lmi.setup import OFF, LmiSetup, is_true, rendered


def dtype_is_accepted(lmi: Lmi) -> Iterator[Problem]:
    """Each handler has the precisions that it knows."""
    setup = lmi.setup
    facts = setup.options.get(setup.dtype_key)
    if facts and facts.allowed is not None and setup.serving.dtype not in facts.allowed:
        message = f"{setup.reader} does not load weights in {setup.serving.dtype}"
        remedy = f"Use one of {', '.join(value for value in facts.allowed if value != 'auto')}."
        yield problem(Code.LMI_DTYPE, message, remedy, ("serving", "dtype"))


def remote_code_can_be_trusted(lmi: Lmi) -> Iterator[Problem]:
    """Handlers that do not read the option never run a checkpoint's code."""
    setup = lmi.setup
    is_read = setup.reads("trust_remote_code") or not setup.is_settled
    if setup.serving.trust_remote_code and not is_read:
        message = f"{setup.reader} cannot run a checkpoint's own code"
        remedy = "Remove `trust_remote_code`, or choose a later version."
        yield problem(Code.LMI_SETTING_UNREAD, message, remedy, ("serving", "trust_remote_code"))


def rolling_batch_is_known(lmi: Lmi) -> Iterator[Problem]:
    """A value needs a handler that reads it and a library that the image has."""
    setup = lmi.setup
    batch = setup.serving.rolling_batch
    if setup.handler is None or batch is None:
        return
    facts = setup.every_option.get("rolling_batch")
    if facts is None:
        if not setup.is_open:
            message = f"{setup.reader} has no rolling batch"
            remedy = "Remove `rolling_batch`, or set `max_batch_size`."
            yield problem(Code.LMI_ROLLING_BATCH, message, remedy, ("serving", "rolling_batch"))
        return
    if facts.allowed is None or batch in facts.allowed:
        return
    elsewhere = _frameworks_with_rolling_batch(setup, batch)
    hint = did_you_mean(batch, facts.allowed)
    if elsewhere:
        hint = f"It is in {' and '.join(elsewhere)} of that version. "
    message = f"{setup.reader} has no rolling batch '{batch}'"
    remedy = f"{hint}There are {', '.join(facts.allowed)}."
    yield problem(Code.LMI_ROLLING_BATCH, message, remedy, ("serving", "rolling_batch"))


def rolling_batch_fits_engine(lmi: Lmi) -> Iterator[Problem]:
    """Refuses a rolling batch that does not fit the engine; some need MPI's processes."""
    setup = lmi.setup
    # Slipway's image has no rolling batch on any engine, which another rule reports.
    if setup.serving.rolling_batch is None or setup.ours is not None:
        return
    engines = setup.version.rolling_batch_engines.get(setup.serving.rolling_batch)
    if engines is not None and setup.engine not in engines:
        yield problem(
            Code.LMI_ROLLING_BATCH,
            f"rolling batch {setup.serving.rolling_batch} of {setup.image} does not run on the "
            f"engine {setup.engine}",
            f"Set `engine: {engines[0]}`.",
            ("serving", "engine"),
        )


def batches_are_of_one_kind(lmi: Lmi) -> Iterator[Problem]:
    """The server turns the rolling batch off where it forms batches itself, and says nothing."""
    batch, size = lmi.serving.rolling_batch, lmi.serving.max_batch_size
    if batch not in (None, OFF) and size > 1:
        yield problem(
            Code.LMI_ROLLING_BATCH,
            f"batches of {size} turn the rolling batch {batch} off",
            "Remove `max_batch_size`; `max_rolling_batch_size` is the rolling batch's. Or remove "
            "`rolling_batch`.",
            ("serving", "max_batch_size"),
        )


def rolling_batch_size_is_read(lmi: Lmi) -> Iterator[Problem]:
    """Refuses the size of a rolling batch that is off, because it would have no effect."""
    setup, size = lmi.setup, lmi.serving.max_rolling_batch_size
    if size is not None and setup.is_settled and not setup.rolls:
        yield problem(
            Code.LMI_SETTING_UNREAD,
            "there is no rolling batch for `max_rolling_batch_size` to limit",
            "Set `rolling_batch`, or remove `max_rolling_batch_size`.",
            ("serving", "max_rolling_batch_size"),
        )


def batch_settings_are_read(lmi: Lmi) -> Iterator[Problem]:
    """The oldest servers are told of batches and queues by other means than the file."""
    setup = lmi.setup
    serving = setup.serving
    for field, key in (("max_batch_size", "batch_size"), ("max_queue_length", "job_queue_size")):
        default = type(serving).model_fields[field].default
        if getattr(serving, field) != default and key not in setup.version.server_keys:
            message = f"{setup.image} does not read `{key}` from serving.properties"
            remedy = f"Remove `{field}`, or use a later version."
            yield problem(Code.LMI_SETTING_UNREAD, message, remedy, ("serving", field))
    delay = "max_batch_delay_milliseconds"
    if serving.max_batch_size == 1 and delay in serving.model_fields_set:
        message = "batches of one request have no delay"
        remedy = f"Set `max_batch_size`, or remove `{delay}`."
        yield problem(Code.LMI_SETTING_UNREAD, message, remedy, ("serving", delay))


def _frameworks_with_rolling_batch(setup: LmiSetup, batch: str) -> list[str]:
    """Returns the other images of the version whose same handler has a rolling batch."""
    found = []
    for framework in frameworks():
        if not framework.startswith("djl-") or setup.serving.version not in versions(framework):
            continue
        other = lmi_version(framework, setup.serving.version)
        if setup.handler not in other.handlers:
            continue
        facts = other.options_for(str(setup.handler)).get("rolling_batch")
        if facts is not None and batch in (facts.allowed or ()):
            found.append(framework)
    return found


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
        if quantizes or (key in _LOADED_IN and is_true(value)):
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
    """DeepSpeed quantizes weights while it loads them from a Hugging Face checkpoint."""
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
