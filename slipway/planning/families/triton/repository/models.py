"""Checks of one model: settings with which Triton would not load it, or not answer on SageMaker.

Sources of the limits: ValidateModelConfig, ValidateModelIOConfig and ValidateInstanceGroup in
src/model_config_utils.cc of triton-inference-server/core.
"""

from collections.abc import Iterator

from slipway.facts.triton.backends import ENSEMBLE, backend_of_platform, backends
from slipway.planning.families.triton.repository.config_file import one_of
from slipway.planning.families.triton.repository.model import Fault, Model
from slipway.planning.families.triton.repository.text_format import START, integer

_BATCHES = "Set `max_batch_size` to the largest batch, and leave the batch out of `dims`."


def name_is_directory(model: Model) -> Iterator[Fault]:
    """Triton takes the directory's name, and refuses another one."""
    for scalar in model.config.scalars("name"):
        if scalar.text and scalar.text != model.name:
            message = f"`name` is {scalar.text!r}, and the directory is `{model.name}`"
            remedy = f'Write `name: "{model.name}"`, leave it out, or rename the directory.'
            yield scalar.position, message, remedy


def backend_is_there(model: Model) -> Iterator[Fault]:
    """A backend comes with AWS's image, or with the model."""
    config, name, release = model.config, model.backend_name, model.file.release
    available = [each.name for each in backends().values() if each.is_in(release)]
    at = model.backend_position
    if model.is_ensemble or model.brings_backend:
        return
    if not name:
        platform = config.text("platform")
        yield (
            at,
            f"no backend has the platform {platform!r}"
            if platform
            else "neither `backend` nor a model file says which backend loads the model",
            f"Add `backend`: {', '.join(available)}.",
        )
    elif name not in available:
        yield (
            at,
            f"AWS's image of Triton {release} has no backend `{name}`",
            f"{one_of(name, available, 'It has')} A backend of your own is a file "
            f"libtriton_{name}.so in the version directory.",
        )
    elif (platform := config.text("platform")) and platform not in backends()[name].platforms:
        other = backend_of_platform(platform)
        if other is not None or backends()[name].platforms:
            message = f"the backend `{name}` does not load the platform {platform!r}"
            yield at, message, "Remove `platform`: the backend says enough."


def versions_exist(model: Model) -> Iterator[Fault]:
    for specific in model.config.messages("version_policy", "specific"):
        for scalar in specific.scalars("versions"):
            if integer(scalar) not in model.versions:
                yield (
                    scalar.position,
                    f"`version_policy` names version {scalar.text}, and there is no directory "
                    f"`{model.name}/{scalar.text}` with files",
                    f"There are: {', '.join(map(str, model.versions)) or 'none'}.",
                )


def tensors_are_whole(model: Model) -> Iterator[Fault]:
    """An input or output has a name, a data type, and dimensions, unless the graph has them."""
    completes = model.completes_itself and model.backend_name != "python"
    for direction in ("input", "output"):
        seen = set[str]()
        for tensor in model.config.messages(direction):
            name = tensor.text("name")
            missing = [
                field for field in ("name", "data_type", "dims") if tensor.one(field) is None
            ]
            if "data_type" not in missing and tensor.text("data_type") in ("TYPE_INVALID", "0"):
                missing.append("data_type")
            if missing and not tensor.left_out and not completes:
                which = f"the {direction} `{name}`" if name else f"an {direction}"
                message = f"{which} has no {' and no '.join(f'`{each}`' for each in missing)}"
                remedy = "Add it: an input or output has `name`, `data_type` and `dims`."
                yield tensor.position, message, remedy
            if name and name in seen:
                message = f"two of the {direction}s are called `{name}`"
                yield tensor.position, message, "Rename one of them."
            seen.add(name)
            for scalar in tensor.scalars("dims"):
                if (number := integer(scalar)) is not None and number < 1 and number != -1:
                    remedy = "A dimension is at least 1, or -1 where it varies."
                    yield scalar.position, f"a dimension is {number}", remedy


def batches_are_possible(model: Model) -> Iterator[Fault]:
    """A batch size is not negative, and a batcher has a batch size."""
    config = model.config
    size = config.integer("max_batch_size")
    sizes = config.scalars("max_batch_size")
    if size is not None and size < 0:
        yield sizes[0].position, f"`max_batch_size` is {size}", "Use 0 for no batches, or more."
        return
    if "max_batch_size" in config.left_out:
        return
    known_size = size if size is not None or model.completes_itself else 0
    for batching in config.messages("dynamic_batching"):
        if known_size == 0:
            yield (
                batching.position,
                "`dynamic_batching` joins requests, and "
                + ("`max_batch_size` is 0" if sizes else "there is no `max_batch_size`"),
                f"{_BATCHES} Or remove `dynamic_batching`.",
            )
        for scalar in batching.scalars("preferred_batch_size"):
            preferred = integer(scalar) or 0
            if preferred < 1 or (size and preferred > size):
                yield (
                    scalar.position,
                    f"a preferred batch size is {preferred}"
                    + (f", and `max_batch_size` is {size}" if preferred > 0 else ""),
                    "Use sizes from 1 to `max_batch_size`.",
                )
        levels = batching.integer("priority_levels")
        default = batching.integer("default_priority_level")
        if levels and not 1 <= (default or 0) <= levels:
            yield (
                batching.position,
                f"`default_priority_level` is {default or 'missing'}, and {levels} levels exist",
                f"Set it to a level from 1 to {levels}.",
            )


def instance_groups_are_possible(model: Model) -> Iterator[Fault]:
    """A group has at least one copy; only a group on GPUs names them."""
    for group in model.config.messages("instance_group"):
        for scalar in group.scalars("count"):
            if (integer(scalar) or 0) < 1:
                message = f"an instance group has {scalar.text} copies"
                yield scalar.position, message, "Set `count` to at least 1, or leave it out."
        kind = group.text("kind")
        if kind in ("KIND_CPU", "KIND_MODEL") and (gpus := group.scalars("gpus")):
            message = f"an instance group of {kind} names GPUs"
            yield gpus[0].position, message, "Remove `gpus`, or set `kind: KIND_GPU`."


def cache_fits(model: Model) -> Iterator[Fault]:
    """Triton refuses the cache of responses for sequences and for several answers."""
    if not any(cache.flag("enable") for cache in model.config.messages("response_cache")):
        return
    for field, called in (
        ("sequence_batching", "sequences"),
        ("model_transaction_policy", "several answers to a request"),
    ):
        for message in model.config.messages(field):
            if field == "sequence_batching" or message.flag("decoupled"):
                refusal = f"`response_cache` does not work with {called}"
                yield message.position, refusal, "Set `enable: false` in `response_cache`."


def ensemble_is_declared(model: Model) -> Iterator[Fault]:
    """An ensemble has its platform and its steps, and nothing that belongs to a backend."""
    if not model.is_ensemble:
        return
    config = model.config
    if not model.has("ensemble_scheduling"):
        message = f"`platform` is `{ENSEMBLE}`, and there is no `ensemble_scheduling`"
        yield START, message, "Add `ensemble_scheduling` with its steps."
    elif config.text("platform") != ENSEMBLE:
        message = f"`ensemble_scheduling` needs the platform `{ENSEMBLE}`"
        remedy = f'Write `platform: "{ENSEMBLE}"`, and remove `backend`.'
        yield config.messages("ensemble_scheduling")[0].position, message, remedy
    for name in ("backend", "instance_group", "optimization", "model_warmup"):
        for field in list(config.all(name))[:1]:
            yield field.position, f"an ensemble has no `{name}`", "Remove it: its models have."
