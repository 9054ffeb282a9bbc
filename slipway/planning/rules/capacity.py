"""Rules about numbers of instances: variants, pools and their models, autoscaling, modes."""

import math
from collections.abc import Iterable, Iterator
from typing import TypeVar

from slipway.codes.code import Code
from slipway.config.sections.base import Section
from slipway.config.sections.endpoint import (
    SHADOW_VARIANT_NAME,
    Endpoint,
    Shadow,
    Variant,
    has_own_model,
)
from slipway.errors import FieldPath, Problem
from slipway.planning.asynchronous import ASYNC
from slipway.planning.component import SCALE_TO_ZERO
from slipway.planning.deployment import Deployment, problem
from slipway.planning.placements import variants_of
from slipway.planning.rules.scaling import bounds_ascend, realtime_from_zero, targets_are_one
from slipway.planning.sizes import download_timeout_seconds, startup_timeout_seconds

_SectionT = TypeVar("_SectionT", bound=Section)
_ENDPOINT: FieldPath = ("endpoint",)
_BOUNDS = ("min_instance_count", "max_instance_count")
_CREATION_MINUTES = 160
_TARGETS = (
    "target_invocations_per_instance_per_minute",
    "target_concurrent_requests_per_instance",
    "target_backlog_per_instance",
    "target_gpu_utilization_percent",
)
# Modes whose section has the mode's name.
_NAMED_ALIKE = ("scale_to_zero", "serverless")


def _each(name: str, sections: Iterable[_SectionT]) -> Iterator[tuple[FieldPath, _SectionT]]:
    """Yields the sections of a list of the endpoint, each with its place in the config."""
    return (((*_ENDPOINT, name, index), each) for index, each in enumerate(sections))


def _variants(endpoint: Endpoint) -> Iterator[tuple[FieldPath, Variant | Shadow]]:
    """Yields the production variants and the shadow variant."""
    yield from _each("variants", endpoint.variants)
    if endpoint.shadow is not None:
        yield (*_ENDPOINT, "shadow"), endpoint.shadow


def variants_are_told_apart(deployment: Deployment) -> Iterator[Problem]:
    """Variants are chosen by name and weight."""
    variants = deployment.config.endpoint.variants
    names = [variant.name for variant in variants]
    for index, name in enumerate(names):
        message = f"there are two variants {name!r}"
        if name not in names[:index]:
            # Construct ids, metrics and people read both as one.
            if name.lower() not in [other.lower() for other in names[:index]]:
                continue
            message = f"{name!r} differs from another variant in case only"
        place = ("endpoint", "variants", index, "name")
        yield problem(Code.NAMED_TWICE, message, "Give each variant its own name.", place)
    wrong: dict[str, str] = {}
    if len(variants) == 1:
        alone = "one variant alone needs no section `variants`"
        wrong[alone] = "Remove `variants`, or add a second one."
    elif variants and not any(variant.weight for variant in variants):
        weightless = "every variant has weight 0: no request would reach one"
        wrong[weightless] = "Give at least one variant a weight above 0."
    if variants and all(map(has_own_model, variants)):
        own = "every variant has a model of its own: none serves the file's"
        wrong[own] = "Write the sections of one variant at the top of the file."
    for message, remedy in wrong.items():
        yield problem(Code.VARIANT_SET, message, remedy, ("endpoint", "variants"))


def models_share_their_place(deployment: Deployment) -> Iterator[Problem]:
    """One role reads the artifacts of all variants and types."""
    endpoint = deployment.config.endpoint
    overrides = _each("model_overrides", endpoint.model_overrides)
    for field, variant in (*_variants(endpoint), *overrides):
        for name in ("isolated", "key_arn"):
            if name in (variant.artifacts or ()):
                message = f"`{name}` is the same for all models of the endpoint"
                remedy = f"Write `{name}` into the file's `artifacts`."
                yield problem(Code.VARIANT_SET, message, remedy, (*field, "artifacts", name))


def shadow_follows_one_variant(deployment: Deployment) -> Iterator[Problem]:
    """An endpoint with a shadow variant has one production variant.

    Source: https://docs.aws.amazon.com/sagemaker/latest/dg/shadow-tests-create.html, read 2026-11.
    """
    endpoint = deployment.config.endpoint
    if endpoint.shadow is not None and endpoint.variants:
        yield problem(
            Code.SHADOW_EXCLUDES,
            f"`shadow` and {len(endpoint.variants)} variants exclude each other: SageMaker copies "
            "the requests of one production variant",
            "Remove `shadow`, or remove `variants`.",
            ("endpoint", "shadow"),
        )


def provision_timeout_needs_pool(deployment: Deployment) -> Iterator[Problem]:
    """The timeout is for all types of a pool together."""
    endpoint = deployment.config.endpoint
    pools = [endpoint.instances, *(each.instances or () for _, each in _variants(endpoint))]
    if endpoint.instance_provision_timeout_seconds is not None and all(len(p) < 2 for p in pools):
        yield problem(
            Code.NO_SECOND_TYPE,
            "there is no second instance type to try",
            "Name several in `instances`, or remove `instance_provision_timeout_seconds`.",
            ("endpoint", "instance_provision_timeout_seconds"),
        )


def creation_ends_in_time(deployment: Deployment) -> Iterator[Problem]:
    """CloudFormation ends a creation at `handlers.create.timeoutInMinutes` of AWS's schema.

    An update has 970 minutes, which SageMaker's own limits cannot exceed.
    """
    endpoint = deployment.config.endpoint
    # An endpoint of copies is created before any copy starts.
    if endpoint.mode == SCALE_TO_ZERO or endpoint.instance_provision_timeout_seconds is None:
        return
    starting = download_timeout_seconds(deployment) + startup_timeout_seconds(deployment)
    seconds = endpoint.instance_provision_timeout_seconds + starting
    if seconds > _CREATION_MINUTES * 60:
        yield problem(
            Code.CREATION_TIME,
            f"a first creation may take {math.ceil(seconds / 60)} minutes by its timeouts for "
            f"instances, download and start-up; CloudFormation ends it after {_CREATION_MINUTES}",
            f"Take {seconds - _CREATION_MINUTES * 60} s from the three timeouts together.",
            ("endpoint", "instance_provision_timeout_seconds"),
        )


def instance_types_differ(deployment: Deployment) -> Iterator[Problem]:
    """A pool tries each type once."""
    endpoint = deployment.config.endpoint
    for field, section in ((_ENDPOINT, endpoint), *_variants(endpoint)):
        types = section.instances or ()
        for index, name in enumerate(types):
            if name in types[:index]:
                place = (*field, "instances", index)
                yield problem(Code.NAMED_TWICE, f"{name} is named twice", "Remove it here.", place)


def scaling_has_one_target(deployment: Deployment) -> Iterator[Problem]:
    """Two targets would pull the fleet in two directions; none would leave it as it is."""
    scaling = deployment.config.autoscaling
    if scaling is None:
        return
    remedy = f"Add `{_TARGETS[0]}`, or `{_TARGETS[1]}`."
    if deployment.config.endpoint.mode == ASYNC:
        remedy = "Add `target_backlog_per_instance`."
    yield from targets_are_one(scaling, _TARGETS, ("autoscaling",), "scale", remedy)


def scaling_target_fits_mode(deployment: Deployment) -> Iterator[Problem]:
    """Endpoints publish the backlog in one mode and invocations in the other (facts: hosting)."""
    scaling, mode = deployment.config.autoscaling, deployment.config.endpoint.mode
    if scaling is None or mode == SCALE_TO_ZERO:  # `copies_are_scaled_alone` refuses the section
        return
    if mode == ASYNC:
        for name in _TARGETS[:2]:
            if getattr(scaling, name) is not None:
                message = "an asynchronous endpoint has no such metric"
                remedy = "Scale by `target_backlog_per_instance`."
                yield problem(Code.SCALING_OF_MODE, message, remedy, ("autoscaling", name))
        return
    if scaling.target_backlog_per_instance is not None:
        yield problem(
            Code.SCALING_OF_MODE,
            "only an asynchronous endpoint has a backlog",
            "Scale by invocations or by concurrent requests, or set `mode: async`.",
            ("autoscaling", "target_backlog_per_instance"),
        )
    if scaling.min_instance_count == 0:
        yield realtime_from_zero(("autoscaling", "min_instance_count"))


def scaling_bounds(deployment: Deployment) -> Iterator[Problem]:
    """The scalable target's bounds are in order, and the count at creation is not above them.

    A count below them is brought up to the minimum when the target is registered, so that another
    minimum changes the target alone. Source, read 2026-11-28:
    https://docs.aws.amazon.com/autoscaling/application/userguide/getting-started.html
    """
    config, scaling = deployment.config, deployment.config.autoscaling
    if scaling is None:
        return
    high = scaling.max_instance_count
    yield from bounds_ascend(scaling, *_BOUNDS, ("autoscaling",))
    if scaling.min_instance_count > high:
        return
    scaled: list[tuple[FieldPath, Endpoint | Variant]] = [(_ENDPOINT, config.endpoint)]
    scaled += _each("variants", config.endpoint.variants)
    for field, section in scaled:
        count = section.instance_count
        if count is not None and count > high:
            yield problem(
                Code.SCALING_RANGE,
                f"{count} instances at creation are more than the autoscaling maximum of {high}",
                "Remove the count: autoscaling starts the minimum.",
                (*field, "instance_count"),
            )


def burstable_types_do_not_scale(deployment: Deployment) -> Iterator[Problem]:
    """SageMaker scales no T instances (facts: hosting)."""
    if deployment.config.autoscaling is None:
        return
    for placement in deployment.placements:
        name = placement.instance.name
        # A shadow variant has a fixed count, and ml.trn is an accelerator's family.
        if placement.variant == SHADOW_VARIANT_NAME or name.startswith("ml.trn"):
            continue
        if name.startswith("ml.t"):
            message = f"{name} is burstable, and SageMaker does not scale such types"
            remedy = "Choose another type, or remove `autoscaling`."
            yield problem(Code.BURSTABLE_TYPE, message, remedy, placement.field)


def mode_has_its_section(deployment: Deployment) -> Iterator[Problem]:
    """Each mode but realtime has settings of its own, and no other mode reads them."""
    endpoint = deployment.config.endpoint
    for mode, name in (("async", "async_inference"), *((each, each) for each in _NAMED_ALIKE)):
        section = getattr(endpoint, name)
        if endpoint.mode == mode and section is None:
            message = f"`mode: {mode}` needs the section `{name}`"
            remedy = f"Add `endpoint.{name}`."
            yield problem(Code.MODE_SECTION, message, remedy, ("endpoint", "mode"))
        elif endpoint.mode != mode and section is not None:
            message = f"nothing reads `{name}` with `mode: {endpoint.mode}`"
            remedy = f"Remove it, or set `mode: {mode}`."
            yield problem(Code.MODE_SECTION, message, remedy, ("endpoint", name))


# Whether the variant has a model of its own, and its types.
_Pool = tuple[bool, tuple[str, ...]]


def overrides_are_of_fallback_types(deployment: Deployment) -> Iterator[Problem]:
    """SageMaker knows a model for each further type of a pool (ModelNameOverride)."""
    pools = list(_pools(deployment))
    seen: set[str] = set()
    for index, override in enumerate(deployment.config.endpoint.model_overrides):
        field: FieldPath = ("endpoint", "model_overrides", index)
        if not has_own_model(override):
            message = "the section has no `model`, `serving` or `artifacts`: nothing would differ"
            remedy = "Write what differs from the file, or remove the section."
            yield problem(Code.MODEL_OVERRIDE, message, remedy, field)
        for position, name in enumerate(override.instances):
            wrong = _of_type(name, pools) if name not in seen else None
            if name in seen:
                wrong = f"{name} has a model already", "Remove it here."
            if wrong is not None:
                yield problem(Code.MODEL_OVERRIDE, *wrong, (*field, "instances", position))
            seen.add(name)


def _pools(deployment: Deployment) -> Iterator[_Pool]:
    endpoint = deployment.config.endpoint
    shadows = (endpoint.shadow,) if endpoint.shadow else ()
    for each in (*(variant for _, _, variant in variants_of(deployment.config)), *shadows):
        yield has_own_model(each), (each.instances if each else None) or endpoint.instances


def _of_type(name: str, pools: list[_Pool]) -> tuple[str, str] | None:
    """Returns what is wrong with an override of a type, and the remedy; else None."""
    named = [pool for pool in pools if name in pool[1]]
    if not named:
        return f"no pool has {name}", "Add it to `endpoint.instances`, or remove it here."
    if any(types[0] == name for _, types in named):
        return (
            f"{name} is the first type of its pool, and runs the model of the file",
            "Write the sections of the first type at the top of the file, and here those of the "
            "types after it.",
        )
    if any(has_own for has_own, _ in named):
        return (
            f"a variant with a model of its own has {name} in its pool, and runs that model there",
            "Give the variant `instances` without this type.",
        )
    return None


def copies_have_one_model(deployment: Deployment) -> Iterator[Problem]:
    """Slipway gives an inference component one specification for all types."""
    endpoint = deployment.config.endpoint
    if endpoint.mode == SCALE_TO_ZERO and endpoint.model_overrides:
        yield problem(
            Code.MODEL_OVERRIDE,
            "Slipway gives the copies of `mode: scale_to_zero` one model on all types of a pool",
            "Use another `mode`, or remove `model_overrides`.",
            ("endpoint", "model_overrides"),
        )
