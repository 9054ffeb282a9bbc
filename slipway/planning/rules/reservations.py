"""Rules about reserved capacity.

An endpoint uses exactly one training plan, and the variant's instance type is the plan's:
https://docs.aws.amazon.com/sagemaker/latest/dg/use-training-plan-for-inference-endpoints-using-api-cli-sdk.html,
read 2026-11-24.
"""

from collections.abc import Iterator

from slipway.codes.code import Code
from slipway.errors import Problem
from slipway.planning.deployment import Deployment, problem

_FIELD = ("endpoint", "capacity_reservation_arn")


def reservation_has_one_type(deployment: Deployment) -> Iterator[Problem]:
    """The plan reserves instances of one type, and a pool names several."""
    endpoint = deployment.config.endpoint
    if endpoint.capacity_reservation_arn is not None and len(endpoint.instances) > 1:
        yield problem(
            Code.CAPACITY_RESERVATION,
            f"the reservation is of one instance type, and there are {len(endpoint.instances)}",
            "Name the reserved type alone.",
            ("endpoint", "instances"),
        )


def reservation_has_one_variant(deployment: Deployment) -> Iterator[Problem]:
    """An endpoint uses one plan, and AWS does not say how variants would share it."""
    endpoint = deployment.config.endpoint
    if endpoint.capacity_reservation_arn is None:
        return
    for name in ("variants", "shadow"):
        if getattr(endpoint, name):
            yield problem(
                Code.CAPACITY_RESERVATION,
                f"a reservation serves one variant, and `{name}` adds others",
                f"Remove `{name}`, or the reservation.",
                ("endpoint", name),
            )


def reservation_is_of_the_region(deployment: Deployment) -> Iterator[Problem]:
    """Capacity is reserved in one region."""
    arn, environment = deployment.config.endpoint.capacity_reservation_arn, deployment.environment
    if arn is not None and (region := arn.split(":")[3]) != environment.region:
        yield problem(
            Code.CAPACITY_RESERVATION,
            f"the reservation is in {region}, and the endpoint of `{environment.name}` in "
            f"{environment.region}",
            f"Name one of {environment.region} under `environments: {environment.name}:`.",
            _FIELD,
        )
