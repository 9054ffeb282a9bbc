"""Reads and changes the capacity of a scalable target, through SageMaker's API.

The capacity of a variant is its number of instances. The capacity of an inference component is its
number of copies.
"""

from typing import Any

from botocore.exceptions import ClientError

# Scalable dimensions: what a target of SageMaker may change.
INSTANCES = "sagemaker:variant:DesiredInstanceCount"
COPIES = "sagemaker:inference-component:DesiredCopyCount"


class BusyError(Exception):
    """The target is being changed, so that its capacity cannot be changed now."""


def capacity(sagemaker: Any, resource_id: str) -> int | None:
    """Returns the capacity of a target; None if there is no such variant or component.

    `resource_id` is `endpoint/NAME/variant/NAME` or `inference-component/NAME`. Raises `BusyError`
    if a change of the endpoint or the component is in progress.
    """
    if (component := _component(resource_id)) is not None:
        return _copies(sagemaker, component)
    _, endpoint, _, variant = resource_id.split("/")
    try:
        described = sagemaker.describe_endpoint(EndpointName=endpoint)
    except ClientError:
        return None  # deleted meanwhile
    if described["EndpointStatus"] != "InService":
        raise BusyError
    counts = {
        item["VariantName"]: int(item["DesiredInstanceCount"])
        for item in described["ProductionVariants"]
    }
    return counts.get(variant)


def set_capacity(sagemaker: Any, resource_id: str, count: int) -> None:
    """Changes the capacity of a target; SageMaker may refuse the change with a `ClientError`."""
    if (component := _component(resource_id)) is not None:
        sagemaker.update_inference_component_runtime_config(
            InferenceComponentName=component, DesiredRuntimeConfig={"CopyCount": count}
        )
        return
    _, endpoint, _, variant = resource_id.split("/")
    sagemaker.update_endpoint_weights_and_capacities(
        EndpointName=endpoint,
        DesiredWeightsAndCapacities=[{"VariantName": variant, "DesiredInstanceCount": count}],
    )


def _component(resource_id: str) -> str | None:
    kind, _, name = resource_id.partition("/")
    return name if kind == "inference-component" else None


def _copies(sagemaker: Any, component: str) -> int | None:
    try:
        described = sagemaker.describe_inference_component(InferenceComponentName=component)
    except ClientError:
        return None  # deleted meanwhile
    status = described["InferenceComponentStatus"]
    if status in ("Creating", "Updating"):
        raise BusyError
    return int(described["RuntimeConfig"]["DesiredCopyCount"]) if status == "InService" else None
