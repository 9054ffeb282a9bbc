"""Where AWS's answers have the fields of a config: a table for each structure.

`Answer.fields` takes the fields of a table out of an answer.
"""

from collections.abc import Mapping
from typing import Any, Final

from slipway.deployed.described import Raw

Paths = Mapping[str, tuple[str, ...]]

TIMEOUTS: Final[Paths] = {
    "model_data_download_timeout_seconds": ("ModelDataDownloadTimeoutInSeconds",),
    "container_startup_health_check_timeout_seconds": (
        "ContainerStartupHealthCheckTimeoutInSeconds",
    ),
}
"""Fields of `endpoint` that a variant has, or an inference component under StartupParameters."""

VARIANT: Final[Paths] = {
    "instance_count": ("InitialInstanceCount",),
    "weight": ("InitialVariantWeight",),
    **TIMEOUTS,
    "volume_size_gb": ("VolumeSizeInGB",),
    "capacity_reservation_arn": ("CapacityReservationConfig", "MlReservationArn"),
    "inference_ami_version": ("InferenceAmiVersion",),
    "instance_provision_timeout_seconds": ("VariantInstanceProvisionTimeoutInSeconds",),
    "routing": ("RoutingConfig", "RoutingStrategy"),
    "ssm_access": ("EnableSSMAccess",),
}
"""Fields of `endpoint` that a variant of an endpoint configuration has."""

_PREFIXES = ("RoutingConfig", "PrefixAwareRoutingConfig")
PREFIX_ROUTING: Final[Paths] = {
    "prefix_length": (*_PREFIXES, "PrefixLength"),
    "concurrency_threshold": (*_PREFIXES, "ConcurrencyThreshold"),
}
"""Fields of `endpoint.prefix_routing` that a variant of an endpoint configuration has."""

CORE_DUMP: Final[Paths] = {
    "destination": ("CoreDumpConfig", "DestinationS3Uri"),
    "key_arn": ("CoreDumpConfig", "KmsKeyId"),
}
"""Fields of `endpoint.core_dump` that a variant of an endpoint configuration has."""

SERVERLESS_FIELDS: Final[Paths] = {
    "memory_size_mb": ("ServerlessConfig", "MemorySizeInMB"),
    "max_concurrency": ("ServerlessConfig", "MaxConcurrency"),
    "provisioned_concurrency": ("ServerlessConfig", "ProvisionedConcurrency"),
}
"""Fields of `endpoint.serverless` that a variant of an endpoint configuration has."""

METRICS: Final[Paths] = {
    "enhanced": ("EnableEnhancedMetrics",),
    "publish_frequency_seconds": ("MetricPublishFrequencyInSeconds",),
    "detailed_observability": ("EnableDetailedObservability",),
}
"""Fields of `endpoint.metrics` that MetricsConfig has."""

PRIVATE_REGISTRY: Final[Paths] = {
    "credentials_function_arn": (
        "ImageConfig",
        "RepositoryAuthConfig",
        "RepositoryCredentialsProviderArn",
    ),
}
"""Fields of `serving.private_registry` that a container has."""

QUEUE: Final[Paths] = {
    "output": ("OutputConfig", "S3OutputPath"),
    "failure_output": ("OutputConfig", "S3FailurePath"),
    "output_key_arn": ("OutputConfig", "KmsKeyId"),
    "success_topic_arn": ("OutputConfig", "NotificationConfig", "SuccessTopic"),
    "error_topic_arn": ("OutputConfig", "NotificationConfig", "ErrorTopic"),
    "include_response_in": ("OutputConfig", "NotificationConfig", "IncludeInferenceResponseIn"),
    "max_concurrent_invocations_per_instance": (
        "ClientConfig",
        "MaxConcurrentInvocationsPerInstance",
    ),
}
"""Fields of `endpoint.async_inference` that AsyncInferenceConfig has."""

_COPY: Final[Paths] = {
    "accelerators_per_copy": ("NumberOfAcceleratorDevicesRequired",),
    "vcpus_per_copy": ("NumberOfCpuCoresRequired",),
    "copy_memory_mib": ("MinMemoryRequiredInMb",),
    "max_copy_memory_mib": ("MaxMemoryRequiredInMb",),
}
_SCHEDULING = ("Specification", "SchedulingConfig")
COMPONENT: Final[Paths] = {
    **{name: ("Specification", "ComputeResourceRequirements", *of) for name, of in _COPY.items()},
    "cache_model": ("Specification", "DataCacheConfig", "EnableCaching"),
    "placement_strategy": (*_SCHEDULING, "PlacementStrategy"),
    "max_zone_imbalance": (*_SCHEDULING, "AvailabilityZoneBalance", "MaxImbalance"),
}
"""Fields of `endpoint.scale_to_zero` that an inference component has."""

_SCALE_IN = ("ManagedInstanceScaling", "ScaleInPolicy")
INSTANCES_OF_COPIES: Final[Paths] = {
    "min_instance_count": ("ManagedInstanceScaling", "MinInstanceCount"),
    "consolidation.max_step_size": (*_SCALE_IN, "MaximumStepSize"),
    "consolidation.cooldown_minutes": (*_SCALE_IN, "CooldownInMinutes"),
}
"""Fields of `endpoint.scale_to_zero` that the variant has whose instances run the copies."""

COMPONENT_TIMEOUTS: Final[Paths] = {
    name: ("Specification", "StartupParameters", *path) for name, path in TIMEOUTS.items()
}
"""Fields of `endpoint` that an inference component has."""


def instance_types_of(variant: Raw) -> tuple[str, ...]:
    """Returns the instance types of a configuration's variant; none of a serverless one."""
    pool = sorted(variant.get("InstancePools", ()), key=lambda item: item["Priority"])
    if "ServerlessConfig" in variant:
        return ()
    return tuple(item["InstanceType"] for item in pool) or (variant["InstanceType"],)


def running_instances(variant: Raw) -> dict[str, int]:
    """Returns a live variant's instances by type, of which its pool runs any; none of no pool."""
    pool = (
        (each["InstanceType"], each["CurrentInstanceCount"])
        for each in variant.get("InstancePools", ())
    )
    return {name: count for name, count in pool if count}


# Any: a number of any kind.
def whole(value: Any) -> Any:
    """Returns a number as people write it: 600, and not 600.0."""
    return int(value) if isinstance(value, float) and value == int(value) else value
