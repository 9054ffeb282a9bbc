"""Instance pools where AWS has no capacity of some types."""

from collections.abc import Iterator
from typing import Any

import pytest

from embedded_aws.hosting.fleets.capacity import NO_CAPACITY
from tests.embedded.hosting import composition
from tests.embedded.hosting.conftest import Account
from tests.embedded.hosting.hosted_components import ON_GPU, Hosted
from tests.support.starts import count_start

SCARCE, PLENTY = "ml.g5.xlarge", "ml.g5.2xlarge"


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    directory = tmp_path_factory.mktemp("scarce")
    count_start("server")
    with composition.hosting(directory, without_capacity=[SCARCE]) as clients:
        account = Account(clients, directory)
        account.prepare()
        yield account


def pools(*types: str, **override: Any) -> list[dict[str, Any]]:
    return [
        {"InstanceType": each, "Priority": priority, **({} if priority == 1 else override)}
        for priority, each in enumerate(types, 1)
    ]


def counts(described: dict[str, Any]) -> dict[str, int]:
    (variant,) = described["ProductionVariants"]
    return {pool["InstanceType"]: pool["CurrentInstanceCount"] for pool in variant["InstancePools"]}


def test_the_next_type_of_a_pool_serves_its_own_model(account: Account) -> None:
    other = account.model(mark="other ")
    variant = account.variant(account.model(mark="first "))
    del variant["InstanceType"]
    variant["InstancePools"] = pools(SCARCE, PLENTY, ModelNameOverride=other)
    name = account.begin(account.config(variant))
    described = account.settled(name)
    assert described["EndpointStatus"] == "InService"
    assert counts(described) == {SCARCE: 0, PLENTY: 1}
    assert account.invoke(name) == "other x"
    account.delete(name)


def test_without_another_type_the_endpoint_fails(account: Account) -> None:
    name = account.begin(account.config(account.variant(account.model())))
    described = account.settled(name)
    assert described["EndpointStatus"] == "Failed"
    assert described["FailureReason"] == NO_CAPACITY
    account.delete(name)


def test_an_update_to_a_type_without_capacity_keeps_the_old_fleet(account: Account) -> None:
    plentiful = account.variant(account.model(mark="old "), InstanceType=PLENTY)
    name = account.begin(account.config(plentiful))
    assert account.settled(name)["EndpointStatus"] == "InService"
    scarce = account.config(account.variant(account.model(mark="new ")))
    account.sagemaker.update_endpoint(EndpointName=name, EndpointConfigName=scarce)
    described = account.settled(name)
    assert (described["EndpointStatus"], described["FailureReason"]) == ("InService", NO_CAPACITY)
    assert account.invoke(name) == "old x"
    account.delete(name)


def test_copies_of_a_component_are_placed_on_the_next_type(account: Account) -> None:
    hosted = Hosted(account)
    variant = hosted.variant()
    del variant["InstanceType"]
    endpoint = account.begin(hosted.config({**variant, "InstancePools": pools(SCARCE, PLENTY)}))
    assert account.settled(endpoint)["EndpointStatus"] == "InService"
    name = hosted.component(endpoint, "mine ", copies=2, size=ON_GPU)
    assert hosted.invoke(endpoint, name) == "mine x"
    assert counts(account.settled(endpoint)) == {SCARCE: 0, PLENTY: 2}
    hosted.delete(name)
    account.delete(endpoint)
