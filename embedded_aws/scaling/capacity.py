"""Reads and changes the number of instances of a variant, through SageMaker's API."""

from typing import Any

from botocore.exceptions import ClientError


class BusyError(Exception):
    """The endpoint is being changed, so that its capacity cannot be changed now."""


def set_within(sagemaker: Any, resource_id: str, low: int, high: int) -> None:
    """Brings a variant's number of instances between two bounds.

    Args:
        sagemaker: boto3's client.
        resource_id: of the scalable target, `endpoint/NAME/variant/NAME`.
        low: the fewest instances.
        high: the most instances.

    Raises:
        BusyError: another change of the endpoint is in progress.
        ClientError: SageMaker refuses the change.
    """
    _, endpoint, _, variant = resource_id.split("/")
    try:
        described = sagemaker.describe_endpoint(EndpointName=endpoint)
    except ClientError:
        return  # deleted meanwhile
    if described["EndpointStatus"] != "InService":
        raise BusyError
    for item in described["ProductionVariants"]:
        count = item["DesiredInstanceCount"]
        wanted = min(max(count, low), high)
        if item["VariantName"] == variant and wanted != count:
            sagemaker.update_endpoint_weights_and_capacities(
                EndpointName=endpoint,
                DesiredWeightsAndCapacities=[
                    {"VariantName": variant, "DesiredInstanceCount": wanted}
                ],
            )
