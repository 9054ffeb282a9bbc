"""Instance types that AWS has no capacity of, which a user of the embedded AWS declares.

A variant with instance pools takes the first type with capacity, as AWS's guide says:
https://docs.aws.amazon.com/sagemaker/latest/dg/realtime-endpoints-heterogeneous.html (read
2026-11-25). AWS tries each type for some time. Here the answer is known at once.
"""

from collections.abc import Collection, Sequence

# https://github.com/aws/deep-learning-containers/pull/6673 (2026-08-28) quotes it.
NO_CAPACITY = (
    "Unable to provision requested ML compute capacity due to InsufficientInstanceCapacity error."
)


def available_type(types: Sequence[str], without_capacity: Collection[str]) -> str:
    """Returns the first type with capacity, in order of preference; or the first if none has."""
    return next((each for each in types if each not in without_capacity), types[0])
