"""The rules of a serverless variant. AWS lists the exclusions; its words are not public.

https://docs.aws.amazon.com/sagemaker/latest/dg/serverless-endpoints.html (read 2026-11-29)
"""

from collections.abc import Mapping
from typing import Any

from slipway.embedded_aws.api import ValidationError
from slipway.embedded_aws.hosting.resources.models import primary_container
from slipway.embedded_aws.hosting.resources.records import Declared

_SIZES_MB = range(1024, 6145, 1024)
_OF_CONFIG = ("DataCaptureConfig", "AsyncInferenceConfig", "ShadowProductionVariants")
_OF_INSTANCES = (
    *("InstanceType", "InstancePools", "InitialInstanceCount", "InferenceAmiVersion"),
    *("VolumeSizeInGB", "ManagedInstanceScaling", "CapacityReservationConfig"),
)
_OF_MODEL = ("VpcConfig", "EnableNetworkIsolation")


def check_serverless(
    config: Mapping[str, Any], variant: Mapping[str, Any], model: Declared
) -> None:
    """Checks a variant with a ServerlessConfig, and its model."""
    sized, container = variant["ServerlessConfig"], primary_container(model.parameters)
    if sized["MemorySizeInMB"] not in _SIZES_MB:
        raise ValidationError(f"MemorySizeInMB must be one of {[*_SIZES_MB]}.")
    if sized.get("ProvisionedConcurrency", 0) > sized["MaxConcurrency"]:
        raise ValidationError("ProvisionedConcurrency must not be greater than MaxConcurrency.")
    found = [name for name in _OF_INSTANCES if name in variant]
    found += [name for name in _OF_CONFIG if config.get(name)]
    found += [name for name in _OF_MODEL if model.parameters.get(name)]
    # botocore: ModelDataSource of ContainerDefinition.
    found += ["ModelDataSource"] if "ModelDataSource" in container else []
    found += ["several ProductionVariants"] if len(config["ProductionVariants"]) > 1 else []
    if found:
        raise ValidationError(
            f'Variant "{variant["VariantName"]}" has a ServerlessConfig, which excludes '
            f"{', '.join(found)}."
        )
