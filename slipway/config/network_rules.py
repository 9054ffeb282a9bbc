"""Checks of an environment's `network` beyond the form of its fields."""

from collections.abc import Iterator

from slipway.codes.code import Code
from slipway.config.environments import Environment
from slipway.errors import Kind, Problem


def network_problems(environment: Environment) -> Iterator[Problem]:
    """Yields the problems of one environment's `network`."""
    network = environment.network
    if network is None:
        return
    field = (environment.name, "network")
    for name, values in (
        ("subnet_ids", network.subnet_ids),
        ("security_group_ids", network.security_group_ids),
        ("vpc_endpoints", network.vpc_endpoints),
        ("route_table_ids", network.route_table_ids),
    ):
        for value in dict.fromkeys(values):
            if values.count(value) > 1:
                yield Problem(
                    Code.NETWORK,
                    Kind.VALUE,
                    f"{value} is listed twice",
                    "Remove one of them.",
                    (*field, name),
                )
    wants_s3 = "s3" in network.vpc_endpoints
    if wants_s3 and not network.route_table_ids:
        yield Problem(
            Code.NETWORK,
            Kind.COMPATIBILITY,
            "the VPC endpoint for S3 needs the route tables that lead to it",
            "Add `route_table_ids`: the route tables of `subnet_ids`.",
            (*field, "vpc_endpoints"),
        )
    if network.route_table_ids and not wants_s3:
        yield Problem(
            Code.NETWORK,
            Kind.COMPATIBILITY,
            "`route_table_ids` has no effect without `s3` in `vpc_endpoints`",
            "Add `s3` to `vpc_endpoints`, or remove `route_table_ids`.",
            (*field, "route_table_ids"),
        )
