"""The variant whose instances hold the copies of an inference component, and come and go with them.

The variant names no model. The component says how long a copy may take to start.
"""

from aws_cdk import aws_sagemaker as sagemaker

from slipway.config.sections.endpoint import Endpoint
from slipway.planning.plan import VariantPlan
from stacks.constructs.instance_pools import instance_pools


def component_variant(
    variant: VariantPlan, max_instance_count: int, settings: Endpoint
) -> sagemaker.CfnEndpointConfig.ProductionVariantProperty:
    """Returns the variant of an endpoint that scales to zero.

    Args:
        variant: its instance types, and its count at creation.
        max_instance_count: instances that hold the most copies of every component.
        settings: of the endpoint.
    """
    pools = instance_pools(variant)
    return sagemaker.CfnEndpointConfig.ProductionVariantProperty(
        variant_name=variant.name,
        instance_type=None if pools else variant.instance_type,
        instance_pools=pools,
        variant_instance_provision_timeout_in_seconds=(
            settings.instance_provision_timeout_seconds if pools else None
        ),
        initial_instance_count=variant.instance_count,
        initial_variant_weight=variant.weight,
        managed_instance_scaling=(
            sagemaker.CfnEndpointConfig.ManagedInstanceScalingProperty(
                status="ENABLED",
                min_instance_count=0,
                max_instance_count=max_instance_count,
            )
        ),
        routing_config=sagemaker.CfnEndpointConfig.RoutingConfigProperty(
            routing_strategy=settings.routing.upper()
        ),
        inference_ami_version=variant.inference_ami_version,
        volume_size_in_gb=settings.volume_size_gb,
    )
