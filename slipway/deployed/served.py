"""The image and weights that an endpoint configuration serves, read back from SageMaker."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from slipway.access import paged
from slipway.deployed.calls import described_component, described_config, described_model
from slipway.deployed.described import Raw, containers_of, data_address
from slipway.deployed.fields import instance_types_of
from slipway.planning.artifact_place import artifact_label
from slipway.planning.component import SCALE_TO_ZERO
from slipway.planning.families import FAMILIES
from slipway.planning.placements import SERVERLESS

_ARTIFACT = re.compile(r"^s3://[^/]+/(models/[^/]+/|)artifacts/([0-9a-f]{64})/files/[^?]*$")


@dataclass(frozen=True)
class Served:
    """The image and weights of one endpoint configuration.

    The image is None if the configuration or the model is gone; `gone` then names it. The artifact
    is the label of the model data, or of the weights that variables name. If Slipway did not
    publish them, it is their URI.
    """

    config: str
    image: str | None = None
    artifact: str | None = None
    gone: str | None = None


def served_by(
    sagemaker: Any, config: str, component_name: str = ""
) -> tuple[Served, Mapping[str, tuple[str, ...]], Raw | None]:
    """Follows an endpoint configuration to its first variant's image and weights.

    Returns also the instance types of each variant, the preferred one first, and
    DescribeInferenceComponent's answer if the configuration hosts the component.
    """
    described = described_config(sagemaker, config)
    if described is None:
        return Served(config, gone=f"endpoint config {config}"), {}, None
    component = live_component(sagemaker, described, component_name) if component_name else None
    variants: list[dict[str, Any]] = described["ProductionVariants"]
    shadows: list[dict[str, Any]] = described.get("ShadowProductionVariants", [])
    types = {item["VariantName"]: instance_types_of(item) for item in (*variants, *shadows)}
    model = model_of(sagemaker, variants[0], component)
    if model is None:
        name = model_name(variants[0], component)
        return Served(config, gone=f"model {name}" if name else None), types, component
    return Served(config, *image_and_artifact(model, component)), types, component


def image_and_artifact(model: Raw, component: Raw | None = None) -> tuple[str | None, str | None]:
    """Returns the image of a model, and the label of its model data, or of an adapter's archive."""
    container = containers_of(model)[0]
    archive = (component or {}).get("Specification", {}).get("Container", {}).get("ArtifactUrl")
    return container.get("Image"), _artifact({"ModelDataUrl": archive} if archive else container)


def live_component(sagemaker: Any, config: Raw, name: str) -> dict[str, Any] | None:
    """Returns DescribeInferenceComponent's answer if the configuration hosts components.

    An adapter has the model and the copies of its base in it.
    """
    found = described_component(sagemaker, name) if hosts_components(config) else None
    if found is None or (base := base_name(found)) is None:
        return found
    of_base = described_component(sagemaker, base) or {}
    model = of_base.get("Specification", {}).get("ModelName")
    return {
        **found,
        "Specification": {**found["Specification"], "ModelName": model},
        "RuntimeConfig": of_base.get("RuntimeConfig", {}),
    }


def base_name(component: Raw) -> str | None:
    """Returns the component whose copies load an adapter; None for a component with copies."""
    name: str | None = component.get("Specification", {}).get("BaseInferenceComponentName")
    return name


def same_config(name: str, arn: str) -> bool:
    """Returns whether an ARN belongs to a configuration; SageMaker writes ARNs in lower case."""
    return name.lower() == arn.rpartition("/")[2].lower()


def config_name(sagemaker: Any, arn: str) -> str:
    """Returns the name, in its own case, behind an endpoint configuration's ARN."""
    for item in paged(sagemaker, "list_endpoint_configs", "EndpointConfigs"):
        if item["EndpointConfigArn"] == arn:
            return str(item["EndpointConfigName"])
    return arn.rpartition("/")[2]  # it was deleted; this is all that is known of it


def _artifact(container: Raw) -> str | None:
    address = data_address(container) or _named_weights(container.get("Environment", {}))
    match = _ARTIFACT.search(address or "")
    return artifact_label(match[1], match[2]) if match else address


def _named_weights(environment: Mapping[str, str]) -> str | None:
    """Returns the address of weights in the variables that an earlier version deployed."""
    named = (environment.get(family.weights_variable or "") for family in FAMILIES.values())
    return next(filter(None, named), None)


def model_of(sagemaker: Any, variant: Raw, component: Raw | None) -> dict[str, Any] | None:
    """Returns the model that a variant, or the component on its instances, serves; else None."""
    name = model_name(variant, component)
    return None if name is None else described_model(sagemaker, name)


def model_name(variant: Raw, component: Raw | None) -> str | None:
    name: str | None = variant.get("ModelName")
    if name is None and component is not None:
        name = component.get("Specification", {}).get("ModelName")
    return name


def mode_of(config: Raw) -> str:
    if "AsyncInferenceConfig" in config:
        return "async"
    if "ServerlessConfig" in config["ProductionVariants"][0]:
        return SERVERLESS
    return SCALE_TO_ZERO if hosts_components(config) else "realtime"


def hosts_components(config: Raw) -> bool:
    return "ModelName" not in config["ProductionVariants"][0]
