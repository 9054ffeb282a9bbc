"""Endpoint configurations: checked against SageMaker's rules when they are created."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from embedded_aws.api import ApiError, Caller
from embedded_aws.hosting.records import VALIDATION, Declared, Registry, now, page
from embedded_aws.hosting.refusals import refuse
from embedded_aws.hosting.tags import Tags

_UNSUPPORTED = {
    "AsyncInferenceConfig": "asynchronous inference",
    "ExplainerConfig": "explainers",
    "ShadowProductionVariants": "shadow variants",
    "ExecutionRoleArn": "inference components",
    "VpcConfig": "inference components",
    "EnableNetworkIsolation": "inference components",
    "CrossRegionTrafficConfig": "traffic across regions",
}
_UNSUPPORTED_VARIANT = {
    "ServerlessConfig": "serverless inference",
    "ManagedInstanceScaling": "inference components",
    "AcceleratorType": "elastic inference",
    "CoreDumpConfig": "core dumps",
    "EnableSSMAccess": "SSM access",
    "CapacityReservationConfig": "capacity reservations",
    "AcceleratorPartitionLayouts": "accelerator partitions",
}
# Families with local NVMe storage, on which SageMaker refuses VolumeSizeInGB. Source: the hosting
# documentation's list of instance types with local storage, read 2026-11.
_LOCAL_STORAGE = re.compile(
    r"ml\.([a-z0-9]+d|g4dn|g5|g6|g6e|g7[a-z]*|p4de|p5[a-z]*|p6[a-z0-9-]*|trn1[a-z]*|trn2[a-z]*|dl1)"
    r"\..+"
)
# CUDA of the host images for GPUs; botocore's documentation of ProductionVariant, 1.44.
_CUDA_OF_AMI = {
    "al2-ami-sagemaker-inference-gpu-2": "12.2",
    "al2-ami-sagemaker-inference-gpu-2-1": "12.2",
    "al2-ami-sagemaker-inference-gpu-3-1": "12.4",
    "al2023-ami-sagemaker-inference-gpu-4-1": "13.0",
}
_GPU_FAMILY = re.compile(r"(g|p)\d[a-z0-9-]*")
# The only other host image is for these families; inf1 takes none.
_NEURON_FAMILY = re.compile(r"(inf2|trn\d)[a-z0-9-]*")


class EndpointConfigs:
    """The operations on endpoint configurations.

    Args:
        models: the models that variants name.
        tags: keeps the tags.
    """

    def __init__(self, models: Registry[Declared], tags: Tags) -> None:
        self._models = models
        self._tags = tags
        self.registry: Registry[Declared] = Registry(
            noun="endpoint configuration", arn_type="endpoint-config"
        )

    def create(self, caller: Caller, parameters: dict[str, Any]) -> dict[str, Any]:
        """Handles CreateEndpointConfig."""
        name = parameters["EndpointConfigName"]
        refuse(parameters, _UNSUPPORTED)
        if parameters.get("DataCaptureConfig", {}).get("EnableCapture"):
            raise ApiError(VALIDATION, "The embedded AWS does not emulate data capture.")
        metrics = parameters.get("MetricsConfig", {})
        if metrics.get("EnableEnhancedMetrics") or metrics.get("EnableDetailedObservability"):
            raise ApiError(VALIDATION, "The embedded AWS does not emulate enhanced metrics.")
        variants = parameters["ProductionVariants"]
        names = [variant["VariantName"] for variant in variants]
        for repeated in {name for name in names if names.count(name) > 1}:
            raise ApiError(VALIDATION, f'Duplicate variant name "{repeated}".')
        for variant in variants:
            self._check_variant(caller, variant)
        kept = {key: value for key, value in parameters.items() if key != "Tags"}
        kept["ProductionVariants"] = [{"InitialVariantWeight": 1.0, **v} for v in variants]
        arn = self.registry.arn(caller, name)
        self.registry.add(caller, Declared(name, arn, now(), kept))
        self._tags.create(arn, parameters.get("Tags", []))
        return {"EndpointConfigArn": arn}

    def describe(self, caller: Caller, parameters: dict[str, Any]) -> dict[str, Any]:
        """Handles DescribeEndpointConfig."""
        record = self.registry.get(caller, parameters["EndpointConfigName"])
        return {
            **record.parameters,
            "EndpointConfigArn": record.arn,
            "CreationTime": record.created,
        }

    def list(self, caller: Caller, parameters: dict[str, Any]) -> dict[str, Any]:
        """Handles ListEndpointConfigs."""
        records, token = page(self.registry.all(caller.region), parameters, sort_keys={})
        configs = [
            {
                "EndpointConfigName": record.name,
                "EndpointConfigArn": record.arn,
                "CreationTime": record.created,
            }
            for record in records
        ]
        return {"EndpointConfigs": configs, "NextToken": token}

    def delete(self, caller: Caller, parameters: dict[str, Any]) -> dict[str, Any]:
        """Handles DeleteEndpointConfig; SageMaker allows it under a running endpoint."""
        record = self.registry.get(caller, parameters["EndpointConfigName"])
        self.registry.remove(caller.region, record.name)
        self._tags.remove(record.arn)
        return {}

    def _check_variant(self, caller: Caller, variant: Mapping[str, Any]) -> None:
        name = variant["VariantName"]
        refuse(variant, _UNSUPPORTED_VARIANT)
        if not variant.get("ModelName"):
            raise ApiError(
                VALIDATION,
                f'Variant "{name}" names no model. The embedded AWS does not emulate inference '
                "components, the only use of such a variant.",
            )
        if ("InstanceType" in variant) == ("InstancePools" in variant):
            raise ApiError(
                VALIDATION, f'Variant "{name}" needs either an InstanceType or InstancePools.'
            )
        if "InitialInstanceCount" not in variant:
            raise ApiError(VALIDATION, f'Variant "{name}" needs an InitialInstanceCount.')
        self._models.get(caller, variant["ModelName"])
        for pool in variant.get("InstancePools", []):
            if override := pool.get("ModelNameOverride"):
                self._models.get(caller, override)
        types = instance_types(variant)
        if ami := variant.get("InferenceAmiVersion"):
            _check_ami(ami, types)
        if "VolumeSizeInGB" in variant:
            for instance_type in types:
                if _LOCAL_STORAGE.fullmatch(instance_type):
                    raise ApiError(
                        VALIDATION,
                        f"VolumeSizeInGB is not supported for instance type {instance_type} of "
                        f'variant "{name}": it has local storage.',
                    )


def instance_types(variant: Mapping[str, Any]) -> list[str]:
    """Returns the instance types that a variant names."""
    if "InstanceType" in variant:
        return [variant["InstanceType"]]
    return [pool["InstanceType"] for pool in variant["InstancePools"]]


def _check_ami(ami: str, types: list[str]) -> None:
    """Refuses a host image on a type without its accelerator, in AWS's words.

    Quoted at https://github.com/aws/sagemaker-python-sdk/pull/5093 for a GPU's image on m5, and, in
    the shorter form, at https://github.com/polyai/dialog-rsn-1-sagemaker (both read 2026-11-22).
    """
    cuda = _CUDA_OF_AMI.get(ami)
    for family in (instance_type.split(".")[1] for instance_type in types):
        if cuda is not None and not _GPU_FAMILY.fullmatch(family):
            raise ApiError(
                VALIDATION,
                f"Invalid combination: instance {family} and Cuda {cuda}. Please provide a "
                "supported configuration for this region.",
            )
        if cuda is None and not _NEURON_FAMILY.fullmatch(family):
            raise ApiError(
                VALIDATION, f"Invalid combination: instance {family} and InferenceAmiVersion"
            )


def first_choice(variant: Mapping[str, Any]) -> tuple[str, str]:
    """Returns the instance type of highest priority, and the name of the model that runs on it.

    Every instance type is always available here.
    """
    model_name: str = variant["ModelName"]
    if "InstanceType" in variant:
        return variant["InstanceType"], model_name
    pool = min(variant["InstancePools"], key=lambda p: int(p["Priority"]))
    return pool["InstanceType"], pool.get("ModelNameOverride", model_name)
