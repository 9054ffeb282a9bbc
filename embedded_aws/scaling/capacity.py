"""Reads and changes the number of instances of a variant, through SageMaker's API."""

from typing import Any

from botocore.exceptions import ClientError


class BusyError(Exception):
    """The endpoint is being changed, so that its capacity cannot be changed now."""


def capacity(sagemaker: Any, resource_id: str) -> int | None:
    """Returns a variant's number of instances; None if there is no such variant.

    Args:
        sagemaker: boto3's client.
        resource_id: of the scalable target, `endpoint/NAME/variant/NAME`.

    Raises:
        BusyError: a change of the endpoint is in progress.
    """
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
    """Changes a variant's number of instances.

    Args:
        sagemaker: boto3's client.
        resource_id: of the scalable target.
        count: the new number of instances.

    Raises:
        ClientError: SageMaker refuses the change.
    """
    _, endpoint, _, variant = resource_id.split("/")
    sagemaker.update_endpoint_weights_and_capacities(
        EndpointName=endpoint,
        DesiredWeightsAndCapacities=[{"VariantName": variant, "DesiredInstanceCount": count}],
    )
