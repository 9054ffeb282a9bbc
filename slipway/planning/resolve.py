"""Joins config, facts, environment, lock and image digests into one plan."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from slipway.codes.code import Code
from slipway.config.schema import ModelConfig
from slipway.config.sections.base import UnknownValueError
from slipway.config.sections.endpoint import SHADOW_VARIANT_NAME, Shadow, Variant
from slipway.errors import Problem, UserError
from slipway.facts.images import UnknownImageError
from slipway.facts.instances import instance_types
from slipway.facts.prices import dashboard_price
from slipway.planning import advice
from slipway.planning.advice import OF_ENDPOINT, Subject
from slipway.planning.artifacts import any_source
from slipway.planning.artifacts import parts as artifact_parts
from slipway.planning.component import ComponentPlan, component_plan
from slipway.planning.cost import Fleet, estimate_cost
from slipway.planning.deployment import Deployment, problem
from slipway.planning.families import FAMILIES, deployment_of
from slipway.planning.images import image_plan, inference_ami
from slipway.planning.lock import Lock
from slipway.planning.memory import estimate
from slipway.planning.partial import found_by, rules_of
from slipway.planning.placements import SERVERLESS, variants_of
from slipway.planning.plan import (
    DeploymentPlan,
    GuestPlan,
    PlanWarning,
    VariantPlan,
    most_instances,
)
from slipway.planning.rules import RULES, adapters, serverless
from slipway.planning.sizes import download_timeout_seconds, startup_timeout_seconds

Owns = Mapping[str, DeploymentPlan | None]


def resolve(
    deployment: Deployment,
    lock: Lock,
    image_digests: Mapping[str, str],
    *,
    guests: Sequence[GuestPlan] = (),
    owns: Owns = MappingProxyType({}),
    allow_unpublished: bool = False,
) -> DeploymentPlan:
    """Makes the plan of one model in one environment.

    Args:
        deployment: of a valid config.
        lock: the model's published artifacts.
        image_digests: fingerprint of the sources of each image that Slipway builds, by family.
        guests: models whose copies run on the model's endpoint.
        owns: plans of endpoints of one variant, for each variant that has its own model. The plan
            is without a variant that has None, whose problems the caller reports.
        allow_unpublished: whether an artifact that does not exist is allowed, for reading and
            linting.

    Raises:
        UserError: every incompatibility, with its field; the caller fills in the places.
    """
    config, environment = deployment.config, deployment.environment
    problems = known_problems(deployment)
    if problems:
        # What the rules are about may be needed to go on.
        raise UserError([*problems, *_state(deployment, lock, allow_unpublished=allow_unpublished)])
    parts = artifact_parts(deployment, lock, allow_unpublished=allow_unpublished)
    image = image_plan(deployment, image_digests, allow_unpublished=allow_unpublished)
    if isinstance(parts, Problem) or isinstance(image, Problem):
        raise UserError([found for found in (parts, image) if isinstance(found, Problem)])
    component = component_plan(
        config.endpoint, deployment.instances, environment.stack_name(config.name)
    )
    overrides = tuple(_overrides(config, owns))
    variants = tuple(_with_time(each, overrides) for each in _variants(deployment, owns))
    shadow = _shadow(deployment, owns)
    if wrong := list(_other_host_images(config, variants[0], overrides)):
        raise UserError(wrong)
    # A guest's instances are in the cost of its host's endpoint.
    paid = () if config.endpoint.host else variants
    fleets = [_fleet(variant, config, component, guests) for variant in paid]
    if shadow is not None:
        fleets.append(_fixed_fleet(shadow, config))
    dashboard = None
    if paid and config.endpoint.dashboard:
        dashboard = dashboard_price(environment.region)
    subject = Subject(deployment, parts.model_data, parts.weights)
    return DeploymentPlan(
        config=config,
        environment=environment,
        image=image,
        artifact=parts.model_data,
        weights=parts.weights,
        partition=deployment.partition_plan,
        serving_properties=(
            deployment.serving_properties(parts.weights.s3_uri) if parts.weights else {}
        ),
        container_environment=deployment.container_environment(),
        component=component,
        guests=tuple(guests),
        variants=variants,
        shadow=shadow and _with_time(shadow, overrides),
        overrides=overrides,
        neuron=deployment.neuron_placement,
        memory=estimate(deployment, deployment.instance),
        cost=estimate_cost(fleets, environment.region, dashboard=dashboard),
        warnings=tuple(_with_warnings_of(owns, deployment, list(_warnings(subject)))),
    )


def known_problems(deployment: Deployment) -> list[Problem]:
    """Returns the incompatibilities among the values of a config, or of its valid part.

    Variants that share their instances share problems, so each is returned once.
    """
    with contextlib.suppress(UnknownValueError):
        if deployment.config.adapter_of is not None:
            return found_by(rules_of(adapters), deployment)
    found: list[Problem] = []
    with contextlib.suppress(UnknownValueError):  # the container
        if not any(serverless.container_runs_serverless(deployment)):
            found += FAMILIES[deployment.container].problems(deployment)
    found += found_by(RULES, deployment)
    return list(dict.fromkeys(found))


def _warnings(subject: Subject) -> Iterator[PlanWarning]:
    if subject.deployment.config.adapter_of is not None:
        return
    for advise in rules_of(advice):
        if subject.deployment.variant is None or advise not in OF_ENDPOINT:
            yield from advise(subject)
    yield from FAMILIES[subject.deployment.container].warnings(subject.deployment)


def _with_warnings_of(
    owns: Owns, deployment: Deployment, warnings: list[PlanWarning]
) -> Iterator[PlanWarning]:
    yield from warnings
    for name, plan in owns.items():
        if plan is None:
            continue
        other = deployment_of(plan.config, plan.environment)
        form = (deployment.container, deployment.is_encoder)
        if (other.container, other.is_encoder) != form:
            yield PlanWarning(
                "variants-differ-in-form",
                f"The model of `{name}` takes requests, or answers them, in another form than "
                "the endpoint's model. Every request must suit both.",
            )
        for warning in plan.warnings:
            if warning not in warnings:
                of = f"On `{name}`" if name in instance_types() else f"Variant `{name}`"
                yield replace(warning, message=f"{of}: {warning.message}")


def _state(deployment: Deployment, lock: Lock, *, allow_unpublished: bool) -> list[Problem]:
    """Returns further problems of a config that breaks rules, so that all are reported at once."""
    try:
        parts = artifact_parts(deployment, lock, allow_unpublished=allow_unpublished)
    except (UnknownImageError, UnknownValueError):
        # The files that an artifact has depend on the image, and on the layout on the instance.
        return []
    # Without a source there is nothing to publish yet: one remedy at a time.
    return [parts] if isinstance(parts, Problem) and any_source(deployment) else []


def _variants(deployment: Deployment, owns: Owns) -> Iterator[VariantPlan]:
    for _, name, variant in variants_of(deployment.config):
        if name in owns and owns[name] is None:
            continue
        weight = variant.weight if variant else 1.0
        yield _variant(deployment, name, variant, owns.get(name), weight=weight)


def _shadow(deployment: Deployment, owns: Owns) -> VariantPlan | None:
    """Returns the shadow variant; its weight is relative to the 1.0 of the production variant."""
    shadow = deployment.config.endpoint.shadow
    if shadow is None or (SHADOW_VARIANT_NAME in owns and owns[SHADOW_VARIANT_NAME] is None):
        return None
    name, weight = SHADOW_VARIANT_NAME, shadow.sampling_percent / 100
    return _variant(deployment, name, shadow, owns.get(name), weight=weight)


def _variant(
    deployment: Deployment,
    name: str,
    section: Variant | Shadow | None,
    alone: DeploymentPlan | None,
    *,
    weight: float,
) -> VariantPlan:
    if alone is not None:
        return replace(alone.variants[0], name=name, weight=weight, own=alone.served)
    endpoint = deployment.config.endpoint
    types = (section.instances if section else None) or endpoint.instances
    own, sized = deployment.instances_of(name), endpoint.capacity
    count = (section.instance_count if section else None) or endpoint.instance_count
    if endpoint.copies:
        count = max(count, endpoint.copies.min_instance_count)
    return VariantPlan(
        name=name,
        weight=weight,
        instance_types=() if sized else types,
        instance_count=0 if sized else count,
        model_data_download_timeout_seconds=download_timeout_seconds(deployment),
        container_startup_health_check_timeout_seconds=startup_timeout_seconds(deployment),
        inference_ami_version=inference_ami(deployment, own),
        gpu_count=own[0].gpu_count,
        serverless=sized,
    )


def _overrides(config: ModelConfig, owns: Owns) -> Iterator[VariantPlan]:
    for name in (each.name for each in config.endpoint.model_overrides):
        if (plan := owns.get(name)) is not None:
            yield replace(plan.variants[0], name=name, own=plan.served)


def _with_time(variant: VariantPlan, overrides: Sequence[VariantPlan]) -> VariantPlan:
    """Returns a variant whose timeouts are enough for each model of its pool."""
    types = {*variant.instance_types}
    pool = (variant, *(each for each in overrides if types & {*each.instance_types}))
    names = (
        "model_data_download_timeout_seconds",
        "container_startup_health_check_timeout_seconds",
    )
    return replace(variant, **{name: max(getattr(each, name) for each in pool) for name in names})


def _other_host_images(
    config: ModelConfig, first: VariantPlan, overrides: Sequence[VariantPlan]
) -> Iterator[Problem]:
    """A variant has one host image, whichever type of its pool runs."""
    ours, names = first.inference_ami_version, [e.name for e in config.endpoint.model_overrides]
    for each in overrides:
        if (other := each.inference_ami_version) != ours:
            yield problem(
                Code.HOST_IMAGE,
                f"the model of {each.name} needs {other or 'no host image'}, and that of "
                f"{first.instance_type} {ours or 'none'}; a pool has one host image",
                "Give both models an image of the same CUDA or Neuron version, or remove the type.",
                ("endpoint", "model_overrides", names.index(each.name), "instances"),
            )


def _fleet(
    variant: VariantPlan,
    config: ModelConfig,
    component: ComponentPlan | None,
    guests: Sequence[GuestPlan],
) -> Fleet:
    fleet, scaling = _fixed_fleet(variant, config), config.autoscaling
    if component is not None:
        least, most = component.min_instance_count, most_instances(component, guests)
    elif scaling is not None:
        least, most = scaling.smallest_count, scaling.largest_count
    else:
        return fleet
    return replace(fleet, minimum_count=least, maximum_count=most)


def _fixed_fleet(variant: VariantPlan, config: ModelConfig) -> Fleet:
    count = variant.instance_count
    if (sized := variant.serverless) is not None:
        warm = sized.provisioned_concurrency or 0
        # No source has the prices: whatever runs costs an unknown sum.
        return Fleet((SERVERLESS,), warm, 1, sized.max_concurrency)
    return Fleet(variant.instance_types, count, count, count, config.endpoint.volume_size_gb)
