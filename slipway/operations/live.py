"""The image and weights that an endpoint configuration serves, read back from SageMaker."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from slipway.planning.artifact_place import artifact_label
from slipway.planning.families import FAMILIES

_ARTIFACT = re.compile(r"^s3://[^/]+/(models/[^/]+/|)artifacts/([0-9a-f]{64})/files/$")


@dataclass(frozen=True)
class Served:
    """The image and weights of one endpoint configuration.

    Args:
        config: name of the endpoint configuration.
        image: image URI of its model; None if the configuration or the model is gone.
        artifact: label of its model data; without model data, of the weights that its variables
            name. If Slipway did not publish them, it is their URI.
        gone: `endpoint config NAME` or `model NAME` if it was deleted.
    """

    config: str
    image: str | None = None
    artifact: str | None = None
    gone: str | None = None


def served_by(
    sagemaker: Any, config: str, component: Mapping[str, Any] | None = None
) -> tuple[Served, Mapping[str, tuple[str, ...]]]:
    """Follows an endpoint configuration to its first variant's image and weights.

    Args:
        sagemaker: boto3's client.
        config: name of the endpoint configuration.
        component: DescribeInferenceComponent's answer, if the variant names no model.

    Returns:
        What it serves, and the instance types of each of its variants, the preferred one first.
    """
    described = described_config(sagemaker, config)
    if described is None:
        return Served(config, gone=f"endpoint config {config}"), {}
    variants: list[dict[str, Any]] = described["ProductionVariants"]
    shadows: list[dict[str, Any]] = described.get("ShadowProductionVariants", [])
    types = {item["VariantName"]: instance_types_of(item) for item in (*variants, *shadows)}
    model = model_of(sagemaker, variants[0], component)
    if model is None:
        name = model_name(variants[0], component)
        return Served(config, gone=f"model {name}" if name else None), types
    container = model.get("PrimaryContainer") or model["Containers"][0]
    return Served(config, container.get("Image"), _artifact(container)), types


def instance_types_of(variant: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the instance types of a configuration's variant, the preferred one first."""
    pool = sorted(variant.get("InstancePools", ()), key=lambda item: item["Priority"])
    return tuple(item["InstanceType"] for item in pool) or (variant["InstanceType"],)


def same_config(name: str, arn: str) -> bool:
    """Returns whether an ARN belongs to a configuration; SageMaker writes ARNs in lower case."""
    return name.lower() == arn.rpartition("/")[2].lower()


def config_name(sagemaker: Any, arn: str) -> str:
    """Returns the name, in its own case, behind an endpoint configuration's ARN."""
    for page in sagemaker.get_paginator("list_endpoint_configs").paginate():
        for item in page["EndpointConfigs"]:
            if item["EndpointConfigArn"] == arn:
                name: str = item["EndpointConfigName"]
                return name
    return arn.rpartition("/")[2]  # it was deleted; this is all that is known of it


def _artifact(container: Mapping[str, Any]) -> str | None:
    source = container.get("ModelDataSource", {}).get("S3DataSource", {})
    address: str | None = (
        source.get("S3Uri")
        or container.get("ModelDataUrl")
        or _named_weights(container.get("Environment", {}))
    )
    match = _ARTIFACT.search(address or "")
    return artifact_label(match[1], match[2]) if match else address


def _named_weights(environment: Mapping[str, str]) -> str | None:
    """Returns the address of weights in the variables that an earlier version deployed."""
    named = (environment.get(family.weights_variable or "") for family in FAMILIES.values())
    return next(filter(None, named), None)


def _found(describe: Any, **name: str) -> dict[str, Any] | None:
    """Calls a Describe operation; None where SageMaker does not know the name."""
    try:
        answer: dict[str, Any] = describe(**name)
    except ClientError as error:
        # SageMaker has no error code of its own for it.
        missing = error.response["Error"]["Message"].startswith("Could not find")
        if error.response["Error"]["Code"] == "ValidationException" and missing:
            return None
        raise
    return answer


def described_config(sagemaker: Any, name: str) -> dict[str, Any] | None:
    """Returns DescribeEndpointConfig's answer, or None where there is no such configuration."""
    return _found(sagemaker.describe_endpoint_config, EndpointConfigName=name)


def described_model(sagemaker: Any, name: str) -> dict[str, Any] | None:
    """Returns DescribeModel's answer, or None where there is no such model."""
    return _found(sagemaker.describe_model, ModelName=name)


def model_of(
    sagemaker: Any, variant: Mapping[str, Any], component: Mapping[str, Any] | None
) -> dict[str, Any] | None:
    """Returns the model that a variant or the component on its instances serves; None without one.

    Args:
        sagemaker: boto3's client.
        variant: of an endpoint configuration.
        component: DescribeInferenceComponent's answer, if the variant names no model.
    """
    name = model_name(variant, component)
    return None if name is None else described_model(sagemaker, name)


def model_name(variant: Mapping[str, Any], component: Mapping[str, Any] | None) -> str | None:
    """Returns the name of the model that a variant or the component on its instances serves."""
    name: str | None = variant.get("ModelName")
    if name is None and component is not None:
        name = component.get("Specification", {}).get("ModelName")
    return name


def described_component(sagemaker: Any, name: str) -> dict[str, Any] | None:
    """Returns DescribeInferenceComponent's answer, or None where there is no such component."""
    return _found(sagemaker.describe_inference_component, InferenceComponentName=name)


def hosts_components(config: Mapping[str, Any]) -> bool:
    """Returns whether the variants of an endpoint configuration name no model."""
    return "ModelName" not in config["ProductionVariants"][0]


def describe_endpoint(sagemaker: Any, name: str) -> dict[str, Any] | None:
    """Returns DescribeEndpoint's answer, or None where there is no such endpoint."""
    return _found(sagemaker.describe_endpoint, EndpointName=name)
