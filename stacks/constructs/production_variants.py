"""The variants of an endpoint configuration."""

from collections.abc import Mapping

from aws_cdk import aws_sagemaker as sagemaker

from slipway.config.sections.endpoint import Endpoint
from slipway.config.sections.recording import CoreDump
from slipway.planning.plan import DeploymentPlan, VariantPlan

_Of = sagemaker.CfnEndpointConfig


def production_variant(
    plan: DeploymentPlan,
    variant: VariantPlan,
    model: sagemaker.CfnModel,
    overrides: Mapping[str, sagemaker.CfnModel],
) -> _Of.ProductionVariantProperty:
    """Returns a variant that serves a model, or on some types another one.

    The variant of inference components names no model, and its instances come and go with their
    copies. The component says how long a copy may take to start.
    """
    settings = plan.config.endpoint
    is_of_copies = plan.component is not None
    if (sized := variant.serverless) is not None:
        return _Of.ProductionVariantProperty(
            variant_name=variant.name,
            model_name=model.attr_model_name,
            initial_variant_weight=variant.weight,
            serverless_config=_Of.ServerlessConfigProperty(
                memory_size_in_mb=sized.memory_size_mb,
                max_concurrency=sized.max_concurrency,
                provisioned_concurrency=sized.provisioned_concurrency,
            ),
        )
    pools = _instance_pools(variant, overrides)
    return _Of.ProductionVariantProperty(
        variant_name=variant.name,
        model_name=None if is_of_copies else model.attr_model_name,
        instance_type=None if pools else variant.instance_type,
        instance_pools=pools,
        variant_instance_provision_timeout_in_seconds=(
            settings.instance_provision_timeout_seconds if pools else None
        ),
        initial_instance_count=variant.instance_count,
        initial_variant_weight=_initial_weight(plan, variant),
        managed_instance_scaling=_instances_of_copies(plan) if is_of_copies else None,
        routing_config=_routing(settings),
        capacity_reservation_config=_reservation(plan, variant),
        inference_ami_version=variant.inference_ami_version,
        core_dump_config=_core_dump(settings.core_dump),
        enable_ssm_access=settings.ssm_access or None,
        volume_size_in_gb=settings.volume_size_gb,
        model_data_download_timeout_in_seconds=(
            None if is_of_copies else variant.model_data_download_timeout_seconds
        ),
        container_startup_health_check_timeout_in_seconds=(
            None if is_of_copies else variant.container_startup_health_check_timeout_seconds
        ),
    )


def _initial_weight(plan: DeploymentPlan, variant: VariantPlan) -> float:
    """Returns the weight until a new variant gets its own, after it is in service.

    Weights of several variants are no part of the configuration, which another weight would
    replace, and with it the fleet.
    """
    if plan.shares_by_weight:
        return float(variant is plan.variants[0])
    return variant.weight


def _routing(settings: Endpoint) -> _Of.RoutingConfigProperty:
    prefixes = None
    if settings.prefix_routing is not None:
        prefixes = _Of.PrefixAwareRoutingConfigProperty(**dict(settings.prefix_routing))
    return _Of.RoutingConfigProperty(
        routing_strategy=settings.routing.upper(), prefix_aware_routing_config=prefixes
    )


def _core_dump(core_dump: CoreDump | None) -> _Of.CoreDumpConfigProperty | None:
    if core_dump is None:
        return None
    return _Of.CoreDumpConfigProperty(
        destination_s3_uri=core_dump.destination, kms_key_id=core_dump.key_arn
    )


def _instance_pools(
    variant: VariantPlan, overrides: Mapping[str, sagemaker.CfnModel]
) -> list[_Of.InstancePoolProperty] | None:
    """Returns a pool for each type of a variant, by preference; None for a single type."""
    if len(variant.instance_types) == 1:
        return None
    return [
        _Of.InstancePoolProperty(
            instance_type=instance_type,
            priority=priority,
            model_name_override=(
                overrides[instance_type].attr_model_name if instance_type in overrides else None
            ),
        )
        for priority, instance_type in enumerate(variant.instance_types, 1)
    ]


def _instances_of_copies(plan: DeploymentPlan) -> _Of.ManagedInstanceScalingProperty:
    """Returns the bounds of the instances: as many as hold the most copies of every component."""
    settings, policy = plan.config.endpoint.copies, None
    if settings is not None and (consolidation := settings.consolidation) is not None:
        policy = _Of.ScaleInPolicyProperty(
            strategy="CONSOLIDATION",
            maximum_step_size=consolidation.max_step_size,
            cooldown_in_minutes=consolidation.cooldown_minutes,
        )
    return _Of.ManagedInstanceScalingProperty(
        status="ENABLED",
        min_instance_count=0 if settings is None else settings.min_instance_count,
        max_instance_count=plan.max_instance_count,
        scale_in_policy=policy,
    )


def _reservation(
    plan: DeploymentPlan, variant: VariantPlan
) -> _Of.CapacityReservationConfigProperty | None:
    arn = plan.config.endpoint.capacity_reservation_arn
    if arn is None or variant not in plan.variants:
        return None  # a shadow variant has no reservation
    return _Of.CapacityReservationConfigProperty(
        # The only preference that there is.
        capacity_reservation_preference="capacity-reservations-only",
        ml_reservation_arn=arn,
    )
