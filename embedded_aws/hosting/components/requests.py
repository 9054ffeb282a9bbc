"""Checks the specification of an inference component.

Where a message has no source beside it, AWS's words are not public and they are Slipway's.
"""

from collections.abc import Mapping
from typing import Any

from slipway.embedded_aws.api import Caller, ValidationError
from slipway.embedded_aws.hosting.resources.models import Models
from slipway.embedded_aws.hosting.resources.refusals import refuse

_UNSUPPORTED = {"InstanceType": "specifications of instance types"}
BASE = "BaseInferenceComponentName"
"""The member that makes an adapter of a component."""
_UNSUPPORTED_CONTAINER = {"ContainerMetricsConfig": "metrics scraped from containers"}
_UNSUPPORTED_RESOURCES = {"AcceleratorPartitionType": "accelerator partitions"}


def specification_of(parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    refuse(parameters, {"Specifications": "several specifications of a component"})
    specification: Mapping[str, Any] | None = parameters.get("Specification")
    if specification is None:
        raise ValidationError("An inference component needs a Specification.")
    refuse(specification, _UNSUPPORTED)
    if BASE in specification:
        _check_adapter(specification, parameters)
        return specification
    container = specification.get("Container")
    if (container is None) == (specification.get("ModelName") is None):
        raise ValidationError(
            "The Specification of an inference component needs either a ModelName or a Container."
        )
    refuse(container or {}, _UNSUPPORTED_CONTAINER)
    resources = specification.get("ComputeResourceRequirements")
    if resources is None:
        raise ValidationError(
            "The Specification of an inference component needs ComputeResourceRequirements."
        )
    refuse(resources, _UNSUPPORTED_RESOURCES)
    low, high = resources["MinMemoryRequiredInMb"], resources.get("MaxMemoryRequiredInMb")
    if high is not None and high < low:
        raise ValidationError(
            f"MaxMemoryRequiredInMb {high} is less than MinMemoryRequiredInMb {low}."
        )
    return specification


def _check_adapter(specification: Mapping[str, Any], parameters: Mapping[str, Any]) -> None:
    if specification.get("Container", {}).keys() != {"ArtifactUrl"}:
        raise ValidationError("An adapter needs a Container with an ArtifactUrl, and nothing else.")
    of_copies = {"ModelName", "ComputeResourceRequirements", "StartupParameters"}
    excess = sorted(of_copies & specification.keys()) + ["RuntimeConfig"] * (
        "RuntimeConfig" in parameters
    )
    if excess:
        raise ValidationError(
            f"An adapter is loaded by its base component and has no {', '.join(excess)}."
        )


def model_of(
    models: Models, caller: Caller, specification: Mapping[str, Any], settings: Mapping[str, Any]
) -> dict[str, Any]:
    """Returns the request of CreateModel that a copy of a checked specification runs.

    `settings` are role, VPC and isolation of the endpoint configuration. Raises `ValidationError`
    if there is no such model, or CreateModel would refuse it.
    """
    if (name := specification.get("ModelName")) is not None:
        return {**models.get(caller, name).parameters, **settings}
    container = specification["Container"]
    primary = {"Image": container.get("Image"), "Environment": container.get("Environment", {})}
    if (url := container.get("ArtifactUrl")) is not None:
        primary["ModelDataUrl"] = url
    made = {"PrimaryContainer": primary, **settings}
    models.check(caller, made)
    return made
