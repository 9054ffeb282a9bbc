"""The network of an endpoint: the config's own comes before the environment's."""

from typing import Any

import pytest

from slipway.cli.plan_text import describe_plan
from slipway.config.environments import Environment
from slipway.planning.plan import DeploymentPlan
from slipway.planning.resources import resources_of
from slipway.planning.rules import surroundings
from slipway.planning.vpc import VpcPlan
from tests.support.plans import plan_for
from tests.support.projects import NETWORKED, PRODUCTION, model_config
from tests.unit.planning.rule_findings import findings, only

SHARED = ("subnet-0a1b2c3d", "subnet-4e5f6a7b")


def planned(environment: Environment, own: dict[str, Any] | None) -> DeploymentPlan:
    config = model_config(endpoint={} if own is None else {"vpc": own})
    return plan_for(config, environment)


def with_groups(*groups: str) -> Environment:
    """The environment, in which `network` names its groups."""
    network = NETWORKED.network
    assert network is not None
    update = {"network": network.model_copy(update={"security_group_ids": groups})}
    return NETWORKED.model_copy(update=update)


@pytest.mark.parametrize(
    ("environment", "own", "expected"),
    [
        (PRODUCTION, None, None),
        (NETWORKED, None, VpcPlan(SHARED, ())),
        (with_groups("sg-0a000000"), None, VpcPlan(SHARED, ("sg-0a000000",))),
        (NETWORKED, {"subnet_ids": ["subnet-0b000000"]}, VpcPlan(("subnet-0b000000",), ())),
        (
            with_groups("sg-0a000000"),
            {"subnet_ids": ["subnet-0b000000"]},
            VpcPlan(("subnet-0b000000",), ("sg-0a000000",)),
        ),
        (
            with_groups("sg-0a000000"),
            {"subnet_ids": ["subnet-0b000000"], "security_group_ids": ["sg-0a000000"]},
            VpcPlan(("subnet-0b000000",), ("sg-0a000000",)),
        ),
    ],
)
def test_the_config_comes_before_the_environment(
    environment: Environment, own: dict[str, Any] | None, expected: VpcPlan | None
) -> None:
    plan = planned(environment, own)
    assert plan.vpc == expected
    assert ("AWS::IAM::Policy" in resources_of(plan)) is (expected is not None)


def test_the_plan_tells_the_network() -> None:
    lines = dict(
        line.split(maxsplit=1) for line in describe_plan(planned(NETWORKED, None)).splitlines()
    )
    assert lines["vpc"] == (
        "subnets subnet-0a1b2c3d, subnet-4e5f6a7b, security group the foundation's"
    )
    assert "vpc " not in describe_plan(planned(PRODUCTION, None))


def test_a_vpc_needs_a_security_group_from_somewhere() -> None:
    endpoint = {"vpc": {"subnet_ids": ["subnet-0b000000"]}}
    assert only(findings(surroundings.vpc_has_a_security_group, endpoint=endpoint)) == (
        "endpoint.vpc.security_group_ids",
        "the VPC has no security group, and environment `local` has no `network` that gives one",
        "Add `security_group_ids`, or a `network` to the environment in environments.yaml.",
    )
    assert findings(surroundings.vpc_has_a_security_group, NETWORKED, endpoint=endpoint) == []


def test_ids_are_named_once() -> None:
    own = {
        "subnet_ids": ["subnet-0b000000", "subnet-0b000000"],
        "security_group_ids": ["sg-0a000000", "sg-0a000000"],
    }
    assert [
        found[:2] for found in findings(surroundings.ids_are_named_once, endpoint={"vpc": own})
    ] == [
        ("endpoint.vpc.subnet_ids", "subnet-0b000000 is listed twice"),
        ("endpoint.vpc.security_group_ids", "sg-0a000000 is listed twice"),
    ]
