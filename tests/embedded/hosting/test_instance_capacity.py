"""Instance pools where AWS has no capacity of some types."""

from collections.abc import Iterator
from typing import Any

import pytest

from slipway.embedded_aws.hosting.fleets.variant import NO_CAPACITY
from tests.embedded.hosting.conftest import Account, started
from tests.embedded.hosting.hosted_components import ON_GPU, Hosted

SCARCE, PLENTY = "ml.g5.xlarge", "ml.g5.2xlarge"


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    with started(tmp_path_factory.mktemp("scarce"), without_capacity=[SCARCE]) as account:
        yield account


def pools(*types: str, **override: Any) -> list[dict[str, Any]]:
    return [
        {"InstanceType": each, "Priority": priority, **({} if priority == 1 else override)}
        for priority, each in enumerate(types, 1)
    ]


def counts(described: dict[str, Any]) -> dict[str, int]:
    (variant,) = described["ProductionVariants"]
    return {pool["InstanceType"]: pool["CurrentInstanceCount"] for pool in variant["InstancePools"]}


def test_the_next_type_of_a_pool_serves_its_own_model(account):
    other = account.model(mark="other ")
    variant = account.variant(account.model(mark="first "))
    del variant["InstanceType"]
    variant["InstancePools"] = pools(SCARCE, PLENTY, ModelNameOverride=other)
    name = account.serve(variant)
    assert counts(account.settled(name)) == {SCARCE: 0, PLENTY: 1}
    assert account.invoke(name) == "other x"


def test_an_update_to_a_type_without_capacity_keeps_the_old_fleet(account):
    name = account.endpoint(mark="old ", InstanceType=PLENTY)
    described = account.update(name, account.config(account.variant(account.model(mark="new "))))
    assert (described["EndpointStatus"], described["FailureReason"]) == ("InService", NO_CAPACITY)
    assert account.invoke(name) == "old x"


def test_copies_of_a_component_are_placed_on_the_next_type(account):
    hosted = Hosted(account)
    variant = hosted.variant()
    del variant["InstanceType"]
    variant["InstancePools"] = pools(SCARCE, PLENTY)
    endpoint = account.serve(variant, ExecutionRoleArn=account.role)
    name = hosted.component(endpoint, "mine ", copies=2, size=ON_GPU)
    assert hosted.invoke(endpoint, name) == "mine x"
    assert counts(account.settled(endpoint)) == {SCARCE: 0, PLENTY: 2}
