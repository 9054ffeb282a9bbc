"""Checks of one model: settings with which Triton would not load it, or not answer on SageMaker.

Sources of the limits: ValidateModelConfig, ValidateModelIOConfig and ValidateInstanceGroup in
src/model_config_utils.cc of triton-inference-server/core.
"""

from collections.abc import Callable, Iterator

from slipway.codes.code import Code
from slipway.errors import Problem, nearest
from slipway.facts.triton.backends import ENSEMBLE, backend_of_platform, backends
from slipway.planning.families.triton.repository.model import Model
from slipway.planning.families.triton.repository.text_format import (
    Position,
    Scalar,
    integer,
)

_START = Position(1, 1)
_BATCHES = "Set `max_batch_size` to the largest batch, and leave the batch out of `dims`."


def _refused(model: Model, at: Position | None, message: str, remedy: str) -> Problem:
    return model.file.problem(Code.TRITON_MODEL, at or _START, message, remedy)


def name_is_directory(model: Model) -> Iterator[Problem]:
    """Triton takes the directory's name, and refuses another one."""
    for scalar in model.config.scalars("name"):
        if scalar.text and scalar.text != model.name:
            yield _refused(
                model,
                scalar.position,
                f"`name` is {scalar.text!r}, and the directory is `{model.name}`",
                f'Write `name: "{model.name}"`, leave it out, or rename the directory.',
            )


def backend_is_there(model: Model) -> Iterator[Problem]:
    """A backend comes with AWS's image, or with the model."""
    config, name, release = model.config, model.backend_name, model.file.release
    available = [each.name for each in backends().values() if each.is_in(release)]
    at = model.backend_position
    if model.is_ensemble or model.brings_backend:
        return
    if not name:
        platform = config.text("platform")
        yield _refused(
            model,
            at,
            f"no backend has the platform {platform!r}"
            if platform
            else "neither `backend` nor a model file says which backend loads the model",
            f"Add `backend`: {', '.join(available)}.",
        )
    elif name not in available:
        guess = nearest(name, available)
        hint = f"Did you mean `{guess}`? " if guess else ""
        yield _refused(
            model,
            at,
            f"AWS's image of Triton {release} has no backend `{name}`",
            f"{hint}It has: {', '.join(available)}. A backend of your own is a file "
            f"libtriton_{name}.so in the version directory.",
        )
    elif (platform := config.text("platform")) and platform not in backends()[name].platforms:
        other = backend_of_platform(platform)
        if other is not None or backends()[name].platforms:
            yield _refused(
                model,
                at,
                f"the backend `{name}` does not load the platform {platform!r}",
                "Remove `platform`: the backend says enough.",
            )


def has_model_files(model: Model) -> Iterator[Problem]:
    """Each version that is served has the file that its backend loads."""
    given = model.config.scalars("default_model_filename")
    for version in model.served_versions:
        for file in model.model_files():
            if not model.has_file(f"{version}/{file}"):
                yield model.file.problem(
                    Code.TRITON_LAYOUT,
                    given[0].position if given else _START,
                    f"`{model.name}/{version}` has no {file}, which the backend "
                    f"`{model.backend_name}` loads",
                    "Add the file, or name yours with `default_model_filename`.",
                )


def versions_exist(model: Model) -> Iterator[Problem]:
    """A version that the policy names is there."""
    for policy in model.config.messages("version_policy"):
        for specific in policy.messages("specific"):
            for scalar in specific.scalars("versions"):
                if integer(scalar) not in model.versions:
                    yield _refused(
                        model,
                        scalar.position,
                        f"`version_policy` names version {scalar.text}, and there is no directory "
                        f"`{model.name}/{scalar.text}` with files",
                        f"There are: {', '.join(map(str, model.versions)) or 'none'}.",
                    )


def tensors_are_whole(model: Model) -> Iterator[Problem]:
    """An input or output has a name, a data type, and dimensions, unless the graph has them."""
    completes = model.completes_itself and model.backend_name != "python"
    for direction in ("input", "output"):
        seen = set[str]()
        for tensor in model.config.messages(direction):
            name = tensor.text("name")
            called = f"`{name}`" if name else "it"
            missing = [
                field for field in ("name", "data_type", "dims") if tensor.one(field) is None
            ]
            if "data_type" not in missing and tensor.text("data_type") in ("TYPE_INVALID", "0"):
                missing.append("data_type")
            if missing and not tensor.left_out and not completes:
                yield _refused(
                    model,
                    tensor.position,
                    f"an {direction} has no {_listed(missing)}"
                    if "name" in missing
                    else f"the {direction} {called} has no {_listed(missing)}",
                    "Add it: an input or output has `name`, `data_type` and `dims`.",
                )
            if name and name in seen:
                yield _refused(
                    model,
                    tensor.position,
                    f"two of the {direction}s are called `{name}`",
                    "Rename one of them.",
                )
            seen.add(name)
            yield from _dimensions(model, tensor.scalars("dims"))


def _dimensions(model: Model, dims: list[Scalar]) -> Iterator[Problem]:
    for scalar in dims:
        number = integer(scalar)
        if number is not None and number < 1 and number != -1:
            yield _refused(
                model,
                scalar.position,
                f"a dimension is {number}",
                "A dimension is at least 1, or -1 where it varies.",
            )


def batches_are_possible(model: Model) -> Iterator[Problem]:
    """A batch size is not negative, and a batcher has a batch size."""
    config = model.config
    size = config.integer("max_batch_size")
    sizes = config.scalars("max_batch_size")
    if size is not None and size < 0:
        yield _refused(
            model,
            sizes[0].position,
            f"`max_batch_size` is {size}",
            "Use 0 for no batches, or more.",
        )
        return
    if "max_batch_size" in config.left_out:
        return
    known_size = size if size is not None or model.completes_itself else 0
    for batching in config.messages("dynamic_batching"):
        if known_size == 0:
            yield _refused(
                model,
                batching.position,
                "`dynamic_batching` joins requests, and "
                + ("`max_batch_size` is 0" if sizes else "there is no `max_batch_size`"),
                f"{_BATCHES} Or remove `dynamic_batching`.",
            )
        for scalar in batching.scalars("preferred_batch_size"):
            preferred = integer(scalar) or 0
            if preferred < 1 or (size and preferred > size):
                yield _refused(
                    model,
                    scalar.position,
                    f"a preferred batch size is {preferred}"
                    + (f", and `max_batch_size` is {size}" if preferred > 0 else ""),
                    "Use sizes from 1 to `max_batch_size`.",
                )
        levels, default = (
            batching.integer("priority_levels"),
            batching.integer("default_priority_level"),
        )
        if levels and not 1 <= (default or 0) <= levels:
            yield _refused(
                model,
                batching.position,
                f"`default_priority_level` is {default or 'missing'}, and {levels} levels exist",
                f"Set it to a level from 1 to {levels}.",
            )


def instance_groups_are_possible(model: Model) -> Iterator[Problem]:
    """A group has at least one copy; only a group on GPUs names them."""
    for group in model.config.messages("instance_group"):
        for scalar in group.scalars("count"):
            if (integer(scalar) or 0) < 1:
                yield _refused(
                    model,
                    scalar.position,
                    f"an instance group has {scalar.text} copies",
                    "Set `count` to at least 1, or leave it out.",
                )
        kind = group.text("kind")
        if kind in ("KIND_CPU", "KIND_MODEL") and (gpus := group.scalars("gpus")):
            yield _refused(
                model,
                gpus[0].position,
                f"an instance group of {kind} names GPUs",
                "Remove `gpus`, or set `kind: KIND_GPU`.",
            )


def cache_fits(model: Model) -> Iterator[Problem]:
    """Triton refuses the cache of responses for sequences and for several answers."""
    if not any(cache.flag("enable") for cache in model.config.messages("response_cache")):
        return
    for field, called in (
        ("sequence_batching", "sequences"),
        ("model_transaction_policy", "several answers to a request"),
    ):
        for message in model.config.messages(field):
            if field == "sequence_batching" or message.flag("decoupled"):
                yield _refused(
                    model,
                    message.position,
                    f"`response_cache` does not work with {called}",
                    "Set `enable: false` in `response_cache`.",
                )


def ensemble_is_declared(model: Model) -> Iterator[Problem]:
    """An ensemble has its platform and its steps, and nothing that belongs to a backend."""
    if not model.is_ensemble:
        return
    config = model.config
    if not model.has("ensemble_scheduling"):
        yield _refused(
            model,
            None,
            f"`platform` is `{ENSEMBLE}`, and there is no `ensemble_scheduling`",
            "Add `ensemble_scheduling` with its steps.",
        )
    elif config.text("platform") != ENSEMBLE:
        yield _refused(
            model,
            config.messages("ensemble_scheduling")[0].position,
            f"`ensemble_scheduling` needs the platform `{ENSEMBLE}`",
            f'Write `platform: "{ENSEMBLE}"`, and remove `backend`.',
        )
    for name in ("backend", "instance_group", "optimization", "model_warmup"):
        for field in list(config.all(name))[:1]:
            yield _refused(
                model, field.position, f"an ensemble has no `{name}`", "Remove it: its models have."
            )


def _listed(names: list[str]) -> str:
    return " and no ".join(f"`{name}`" for name in names)


RULES: tuple[Callable[[Model], Iterator[Problem]], ...] = (
    name_is_directory,
    backend_is_there,
    has_model_files,
    versions_exist,
    tensors_are_whole,
    batches_are_possible,
    instance_groups_are_possible,
    cache_fits,
    ensemble_is_declared,
)
