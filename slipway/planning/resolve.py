"""Joins config, facts, environment, lock and image digests into one plan."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from slipway.config.environments import Environment
from slipway.config.schema import ModelConfig
from slipway.config.sections.base import UnknownValueError
from slipway.config.sections.endpoint import Shadow, Variant
from slipway.errors import Problem, UserError
from slipway.facts.images import UnknownImageError
from slipway.facts.instances import InstanceFacts
from slipway.planning.advice import ADVICE, Subject
from slipway.planning.alarms import alarm_plan
from slipway.planning.artifact_place import artifact_place
from slipway.planning.artifacts import any_source
from slipway.planning.artifacts import parts as artifact_parts
from slipway.planning.asynchronous import async_plan
from slipway.planning.autoscaling import autoscaling_plan
from slipway.planning.capture import capture_plan
from slipway.planning.component import ComponentPlan, component_plan
from slipway.planning.cost import Fleet, estimate_cost
from slipway.planning.families import FAMILIES, situation_of
from slipway.planning.images import image_plan, inference_ami
from slipway.planning.lock import Lock
from slipway.planning.memory import estimate
from slipway.planning.metrics import metrics_plan
from slipway.planning.partial import found_by
from slipway.planning.placements import SHADOW_VARIANT_NAME, variants_of
from slipway.planning.plan import (
    DeploymentPlan,
    GuestPlan,
    PlanWarning,
    VariantPlan,
    most_instances,
)
from slipway.planning.rollout import rollout_plan
from slipway.planning.rules import RULES
from slipway.planning.sharing import host_of
from slipway.planning.situation import Situation
from slipway.planning.timeouts import download_timeout_seconds, startup_timeout_seconds
from slipway.planning.vpc import vpc_plan


def resolve(
    config: ModelConfig,
    instances: Mapping[str, InstanceFacts],
    environment: Environment,
    lock: Lock,
    image_digests: Mapping[str, str],
    *,
    guests: Sequence[GuestPlan] = (),
    allow_unpublished: bool = False,
) -> DeploymentPlan:
    """Makes the plan of one model in one environment.

    Args:
        config: a valid config.
        instances: facts of the instance types, by name.
        environment: the environment to deploy to.
        lock: the model's published artifacts.
        image_digests: fingerprint of the sources of each image that Slipway builds, by container
            family.
        guests: models whose copies run on the model's endpoint.
        allow_unpublished: whether an artifact that does not exist is allowed, for reading and
            linting.

    Raises:
        UserError: every incompatibility, with its field; the caller fills in the places.
    """
    situation = situation_of(config, environment, instances)
    problems = known_problems(situation)
    if problems:
        # What the rules are about may be needed to go on.
        raise UserError([*problems, *_state(situation, lock, allow_unpublished=allow_unpublished)])
    parts = artifact_parts(situation, lock, allow_unpublished=allow_unpublished)
    image = image_plan(situation, image_digests, allow_unpublished=allow_unpublished)
    if isinstance(parts, Problem) or isinstance(image, Problem):
        raise UserError([found for found in (parts, image) if isinstance(found, Problem)])
    full_name = environment.stack_name(config.name)
    host = host_of(config)
    variants, shadow = tuple(_variants(situation)), _shadow(situation)
    scaling = autoscaling_plan(config.autoscaling)
    component = component_plan(config.endpoint, situation.instances, full_name)
    # A guest's instances are in the cost of its host's endpoint.
    fleets = [] if host else [_fleet(variant, config, component, guests) for variant in variants]
    if shadow is not None:
        fleets.append(_fixed_fleet(shadow))
    subject = Subject(situation, parts.model_data, parts.weights)
    return DeploymentPlan(
        name=config.name,
        description=config.description,
        environment=environment.name,
        project=environment.project,
        account=environment.account,
        region=environment.region,
        stack_name=full_name,
        endpoint_name=environment.stack_name(host or config.name),
        image=image,
        artifact_place=artifact_place(config, environment),
        artifact=parts.model_data,
        weights=parts.weights,
        partition=situation.partition_plan,
        serving_properties=(
            situation.serving_properties(parts.weights.s3_uri) if parts.weights else {}
        ),
        container_environment=situation.container_environment(),
        network_isolation=config.endpoint.network_isolation,
        execution_role_arn=config.endpoint.execution_role_arn,
        vpc=vpc_plan(config, environment),
        capture=capture_plan(config, environment),
        metrics=metrics_plan(config),
        asynchronous=async_plan(config),
        component=component,
        host=host,
        guests=tuple(guests),
        volume_key_arn=config.endpoint.volume_key_arn,
        variants=variants,
        shadow=shadow,
        capacity_reservation_arn=config.endpoint.capacity_reservation_arn,
        routing_strategy=config.endpoint.routing.upper(),
        neuron=situation.neuron_placement,
        memory=estimate(situation, situation.instance),
        cost=estimate_cost(fleets, environment.region),
        autoscaling=scaling,
        alarms=alarm_plan(config.alarms, scaling, component),
        rollout=rollout_plan(config),
        log_group_name=(
            f"/aws/sagemaker/Endpoints/{full_name}"
            if component is None
            else component.log_group_name
        ),
        log_retention_days=config.endpoint.log_retention_days,
        termination_protection=config.endpoint.termination_protection,
        permissions_boundary_arn=environment.permissions_boundary_arn,
        log_key=environment.log_key,
        tags={**config.tags, "slipway:model": config.name, **environment.tags},
        warnings=tuple(_warnings(subject)),
    )


def known_problems(situation: Situation) -> list[Problem]:
    """Returns the incompatibilities among the values that are valid.

    Variants that share their instances share problems, so each is returned once.

    Args:
        situation: of a valid config, or of the valid part of a config: its other fields raise
            `UnknownValueError`.
    """
    found: list[Problem] = []
    with contextlib.suppress(UnknownValueError):  # the container
        found += FAMILIES[situation.container].problems(situation)
    found += found_by(RULES, situation)
    return list(dict.fromkeys(found))


def _warnings(subject: Subject) -> Iterator[PlanWarning]:
    for advise in ADVICE:
        yield from advise(subject)
    yield from FAMILIES[subject.situation.container].warnings(subject.situation)


def _state(situation: Situation, lock: Lock, *, allow_unpublished: bool) -> list[Problem]:
    """Returns further problems of a config that breaks rules, so that all are reported at once."""
    try:
        parts = artifact_parts(situation, lock, allow_unpublished=allow_unpublished)
    except UnknownImageError:
        # The files that an artifact has depend on the image.
        return []
    # Without a source there is nothing to publish yet: one remedy at a time.
    return [parts] if isinstance(parts, Problem) and any_source(situation) else []


def _variants(situation: Situation) -> Iterator[VariantPlan]:
    for _, name, variant in variants_of(situation.config):
        yield _variant(situation, name, variant, weight=variant.weight if variant else 1.0)


def _shadow(situation: Situation) -> VariantPlan | None:
    """Returns the shadow variant; its weight is relative to the 1.0 of the production variant."""
    shadow = situation.config.endpoint.shadow
    if shadow is None:
        return None
    return _variant(situation, SHADOW_VARIANT_NAME, shadow, weight=shadow.sampling_percent / 100)


def _variant(
    situation: Situation, name: str, section: Variant | Shadow | None, *, weight: float
) -> VariantPlan:
    endpoint = situation.config.endpoint
    types = (section.instances if section else None) or endpoint.instances
    own = situation.instances_of(name)
    return VariantPlan(
        name=name,
        weight=weight,
        instance_types=types,
        instance_provision_timeout_seconds=(
            endpoint.instance_provision_timeout_seconds if len(types) > 1 else None
        ),
        instance_count=(section.instance_count if section else None) or endpoint.instance_count,
        model_data_download_timeout_seconds=download_timeout_seconds(situation),
        container_startup_health_check_timeout_seconds=startup_timeout_seconds(situation),
        volume_size_gb=endpoint.volume_size_gb,
        inference_ami_version=inference_ami(situation, own),
        gpu_count=own[0].gpu_count,
    )


def _fleet(
    variant: VariantPlan,
    config: ModelConfig,
    component: ComponentPlan | None,
    guests: Sequence[GuestPlan],
) -> Fleet:
    """Returns the numbers of instances of a variant that are paid for."""
    if component is not None:
        most = most_instances(component, guests)
        return replace(_fixed_fleet(variant), minimum_count=0, maximum_count=most)
    scaling = config.autoscaling
    if scaling is None:
        return _fixed_fleet(variant)
    return replace(
        _fixed_fleet(variant),
        minimum_count=scaling.smallest_count,
        maximum_count=scaling.largest_count,
    )


def _fixed_fleet(variant: VariantPlan) -> Fleet:
    count = variant.instance_count
    return Fleet(
        variant.instance_types,
        minimum_count=count,
        expected_count=count,
        maximum_count=count,
        volume_size_gb=variant.volume_size_gb,
    )
