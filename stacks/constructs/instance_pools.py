"""The instance types of a variant in order of preference, as SageMaker's pools."""

from aws_cdk import aws_sagemaker as sagemaker

from slipway.planning.plan import VariantPlan


def instance_pools(
    variant: VariantPlan,
) -> list[sagemaker.CfnEndpointConfig.InstancePoolProperty] | None:
    """Returns a pool for each type of a variant; None for a single type."""
    if len(variant.instance_types) == 1:
        return None
    return [
        sagemaker.CfnEndpointConfig.InstancePoolProperty(
            instance_type=instance_type, priority=priority
        )
        for priority, instance_type in enumerate(variant.instance_types, 1)
    ]
