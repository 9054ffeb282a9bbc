"""A production variant of a fleet: its name, its instances, its weight.

A variant with instance pools takes the first type with capacity, as AWS's guide says:
https://docs.aws.amazon.com/sagemaker/latest/dg/realtime-endpoints-heterogeneous.html (read
2026-11-25). AWS tries each type for some time. Here the answer is known at once.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from slipway.embedded_aws.hosting.resources.endpoint_configs import instance_types

# https://github.com/aws/deep-learning-containers/pull/6673 (2026-08-28) quotes it.
NO_CAPACITY = (
    "Unable to provision requested ML compute capacity due to InsufficientInstanceCapacity error."
)
REASON_CHARACTERS = 1024  # botocore's maximum of FailureReason


def available_type(types: Sequence[str], without_capacity: Collection[str]) -> str:
    """Returns the first type with capacity, in order of preference; or the first if none has."""
    return next((each for each in types if each not in without_capacity), types[0])


class VariantStartError(Exception):
    """A variant cannot come into service; the message is the endpoint's FailureReason."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason[:REASON_CHARACTERS])


class Variant:
    """A production variant; this class is the part of it that needs no process.

    Attributes:
        instance_type: the type with the first priority among those with capacity.
        has_capacity: whether AWS has capacity of that type.
        weight: share of the requests, relative to the other variants' weights.
        instance_count: as declared or scaled since.
        images: the images that run on the variant's instances by themselves.
        role: ARN of the execution role; None for a model without one.
    """

    images: tuple[str, ...] = ()
    role: str | None = None

    def __init__(
        self, declared: Mapping[str, Any], config_name: str, without_capacity: Collection[str]
    ) -> None:
        self.name: str = declared["VariantName"]
        self.declared = declared
        self.config_name = config_name
        self.instance_type = available_type(instance_types(declared), without_capacity)
        self.has_capacity = self.instance_type not in without_capacity
        self.weight = float(declared["InitialVariantWeight"])
        # A serverless variant counts as one instance in steps of an update.
        self.instance_count = int(declared.get("InitialInstanceCount", 1))

    def start(self) -> None:
        """Brings the variant into service; raises `VariantStartError` if it cannot."""

    def request_stop(self) -> None:
        """Begins to stop; a start in progress fails."""

    def stop(self) -> None:
        """Stops the variant and waits."""

    def drain(self, timeout_seconds: float) -> None:
        """Waits until no request is in flight, at most for that time."""
