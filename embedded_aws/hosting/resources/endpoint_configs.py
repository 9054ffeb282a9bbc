"""Endpoint configurations: checked against SageMaker's rules when they are created."""

import re
from collections.abc import Collection, Mapping
from typing import Any

from slipway.embedded_aws.api import Caller, ValidationError
from slipway.embedded_aws.clients import LoopbackClients
from slipway.embedded_aws.hosting.resources.async_settings import AsyncSettings
from slipway.embedded_aws.hosting.resources.component_variants import (
    check_hosting,
    hosts_components,
)
from slipway.embedded_aws.hosting.resources.models import primary_container
from slipway.embedded_aws.hosting.resources.records import Declared, DeclaredResources, Records
from slipway.embedded_aws.hosting.resources.refusals import refuse
from slipway.embedded_aws.hosting.resources.tags import Tags
from slipway.embedded_aws.hosting.telemetry.metrics import PublishedMetrics
from slipway.embedded_aws.reported_refusals import ReportedRefusal

_UNSUPPORTED = {
    "ExplainerConfig": "explainers",
    "CrossRegionTrafficConfig": "traffic across regions",
}
_UNSUPPORTED_VARIANT = {
    "AcceleratorType": "elastic inference",
    "CoreDumpConfig": "core dumps",
    "EnableSSMAccess": "SSM access",
    "AcceleratorPartitionLayouts": "accelerator partitions",
}
# https://docs.aws.amazon.com/sagemaker/latest/dg/serverless-endpoints.html (read 2026-11-29).
_SIZES_MB = range(1024, 6145, 1024)
_OF_CONFIG = ("DataCaptureConfig", "AsyncInferenceConfig", "ShadowProductionVariants")
_OF_INSTANCES = (
    *("InstanceType", "InstancePools", "InitialInstanceCount", "InferenceAmiVersion"),
    *("VolumeSizeInGB", "ManagedInstanceScaling", "CapacityReservationConfig"),
)
_OF_MODEL = ("VpcConfig", "EnableNetworkIsolation")
_OF_PREFIXES = ("PrefixLength", "ConcurrencyThreshold")
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


class EndpointConfigs(DeclaredResources):
    def __init__(
        self,
        models: Records[Declared],
        tags: Tags,
        clients: LoopbackClients,
        refused: Collection[ReportedRefusal] = (),
    ) -> None:
        super().__init__(
            "EndpointConfig", noun="endpoint configuration", arn_type="endpoint-config", tags=tags
        )
        self._models = models
        self._clients = clients
        self._refused = refused

    def create(self, caller: Caller, parameters: dict[str, Any]) -> dict[str, Any]:
        refuse(parameters, _UNSUPPORTED)
        PublishedMetrics.of(parameters)  # raises for values that SageMaker refuses
        variants, shadows = parameters["ProductionVariants"], _shadows(parameters)
        if "AsyncInferenceConfig" in parameters:
            _check_async(parameters["AsyncInferenceConfig"], variants)
        names = [variant["VariantName"] for variant in (*variants, *shadows)]
        for repeated in {name for name in names if names.count(name) > 1}:
            raise ValidationError(f'Duplicate variant name "{repeated}".')
        check_hosting(self._clients, caller, parameters, self._refused)
        for variant in (*variants, *shadows):
            self._check_variant(caller, variant, parameters)
        weighted = {"ProductionVariants": _weighted(variants)}
        if shadows:
            weighted["ShadowProductionVariants"] = _weighted(shadows)
        return self.store(caller, {**parameters, **weighted})

    def _check_variant(
        self, caller: Caller, variant: Mapping[str, Any], parameters: Mapping[str, Any]
    ) -> None:
        name = variant["VariantName"]
        refuse(variant, _UNSUPPORTED_VARIANT)
        _check_routing(name, variant.get("RoutingConfig", {}))
        if "ServerlessConfig" in variant:
            _check_serverless(parameters, variant, self._models.get(caller, variant["ModelName"]))
            return
        if ("InstanceType" in variant) == ("InstancePools" in variant):
            raise ValidationError(
                f'Variant "{name}" needs either an InstanceType or InstancePools.'
            )
        if "CapacityReservationConfig" in variant and "InstancePools" in variant:
            # AWS's guide wants the InstanceType of the training plan, and quotes no message.
            raise ValidationError(
                f'Variant "{name}" has a CapacityReservationConfig, which needs the InstanceType '
                "of its reservation, not InstancePools."
            )
        if "InitialInstanceCount" not in variant:
            raise ValidationError(f'Variant "{name}" needs an InitialInstanceCount.')
        if not hosts_components(variant):
            self._models.get(caller, variant["ModelName"])
            for _, model_name in choices(variant):
                self._models.get(caller, model_name)
        types = instance_types(variant)
        if ami := variant.get("InferenceAmiVersion"):
            _check_ami(ami, types)
        if "VolumeSizeInGB" in variant:
            for instance_type in types:
                if _LOCAL_STORAGE.fullmatch(instance_type):
                    raise ValidationError(
                        f"VolumeSizeInGB is not supported for instance type {instance_type} of "
                        f'variant "{name}": it has local storage.'
                    )


def _shadows(parameters: Mapping[str, Any]) -> list[dict[str, Any]]:
    shadows: list[dict[str, Any]] = parameters.get("ShadowProductionVariants", [])
    if shadows and (len(shadows), len(parameters["ProductionVariants"])) != (1, 1):
        # botocore's documentation of CreateEndpointConfig.
        raise ValidationError(
            "With ShadowProductionVariants, you can only specify one variant for "
            "ProductionVariants and one variant for ShadowProductionVariants."
        )
    return shadows


def _weighted(variants: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"InitialVariantWeight": 1.0, **variant} for variant in variants]


def _check_serverless(
    config: Mapping[str, Any], variant: Mapping[str, Any], model: Declared
) -> None:
    """Checks a serverless variant, and its model; AWS lists the exclusions without its words."""
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


def _check_async(config: Mapping[str, Any], variants: list[Any]) -> None:
    if len(variants) > 1:
        raise ValidationError(
            "The embedded AWS does not emulate an asynchronous endpoint of several variants: "
            "InvokeEndpointAsync names none, and the backlog's metrics have none."
        )
    try:
        AsyncSettings.of(config)
    except ValueError as error:
        raise ValidationError(str(error)) from None


def _check_routing(name: str, routing: Mapping[str, Any]) -> None:
    """Checks a RoutingConfig; AWS's words are not public."""
    strategy, prefixes = routing.get("RoutingStrategy"), routing.get("PrefixAwareRoutingConfig")
    if strategy == "KV_AWARE":
        raise ValidationError("The embedded AWS does not emulate routing KV_AWARE.")
    if strategy == "PREFIX_AWARE" and len(prefixes or ()) < len(_OF_PREFIXES):
        raise ValidationError(f'Variant "{name}" needs {" and ".join(_OF_PREFIXES)}.')
    if strategy != "PREFIX_AWARE" and prefixes:
        raise ValidationError(
            f'PrefixAwareRoutingConfig of variant "{name}" needs RoutingStrategy PREFIX_AWARE.'
        )


def _check_ami(ami: str, types: list[str]) -> None:
    """Refuses a host image on a type without its accelerator, in AWS's words.

    Quoted at https://github.com/aws/sagemaker-python-sdk/pull/5093 for a GPU's image on m5, and, in
    the shorter form, at https://github.com/polyai/dialog-rsn-1-sagemaker (both read 2026-11-22).
    """
    cuda = _CUDA_OF_AMI.get(ami)
    for family in (instance_type.split(".")[1] for instance_type in types):
        if cuda is not None and not _GPU_FAMILY.fullmatch(family):
            raise ValidationError(
                f"Invalid combination: instance {family} and Cuda {cuda}. Please provide a "
                "supported configuration for this region."
            )
        if cuda is None and not _NEURON_FAMILY.fullmatch(family):
            raise ValidationError(f"Invalid combination: instance {family} and InferenceAmiVersion")


def choices(variant: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Returns instance types by priority, each with its model's name: empty for components."""
    model_name: str = variant.get("ModelName", "")
    if "ServerlessConfig" in variant:
        return [("serverless", model_name)]
    if "InstanceType" in variant:
        return [(variant["InstanceType"], model_name)]
    pools = sorted(variant["InstancePools"], key=lambda pool: int(pool["Priority"]))
    return [(pool["InstanceType"], pool.get("ModelNameOverride", model_name)) for pool in pools]


def instance_types(variant: Mapping[str, Any]) -> list[str]:
    """Returns the instance types that a variant names, the preferred type first."""
    return [instance_type for instance_type, _ in choices(variant)]
