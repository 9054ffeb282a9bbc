"""A shadow variant gets copies of the requests, and has no effect on the answers."""

import time
from typing import Any

import pytest

from slipway.embedded_aws.hosting.invocations import api
from tests.embedded.hosting.conftest import Account, refused, started
from tests.support.waiting import eventually


def shadowed(
    account: Account, mode: str = "ok", *, share: float = 1.0, start: Any = Account.serve
) -> str:
    shadow = account.variant(account.model(mode, "shadow "), "Shadow", InitialVariantWeight=share)
    production = account.variant(account.model("ok", "production "))
    return start(account, production, ShadowProductionVariants=[shadow])


def count(account: Account, name: str, metric: str, variant: str) -> float:
    found = account.metric(metric, EndpointName=name, VariantName=variant)
    return float(found.get("Sum", 0))


def test_every_request_is_copied_and_production_answers(account):
    name = shadowed(account)
    for number in range(4):
        assert account.invoke(name, str(number)) == f"production {number}"
    eventually(lambda: count(account, name, "Invocations", "Shadow") == 4)
    eventually(lambda: count(account, name, "Invocations", "AllTraffic") == 4)
    described = account.sagemaker.describe_endpoint(EndpointName=name)
    (shadow,) = described["ShadowProductionVariants"]
    assert shadow["VariantName"] == "Shadow"
    assert (shadow["CurrentWeight"], shadow["CurrentInstanceCount"]) == (1.0, 1)
    assert [each["VariantName"] for each in described["ProductionVariants"]] == ["AllTraffic"]
    message = refused(account.invoke, name, TargetVariant="Shadow")
    assert f"Variant Shadow of endpoint {name}" in message


def test_a_weight_copies_that_share_of_the_requests(account):
    name = shadowed(account, share=0.25)
    for _ in range(200):
        account.invoke(name)
    eventually(lambda: count(account, name, "Invocations", "AllTraffic") == 200)
    # Five standard deviations on both sides: it fails once in a million runs.
    assert 20 <= count(account, name, "Invocations", "Shadow") <= 80
    account.scale(name, "Shadow", DesiredWeight=0.0)
    before = count(account, name, "Invocations", "Shadow")
    for _ in range(20):
        account.invoke(name)
    eventually(lambda: count(account, name, "Invocations", "AllTraffic") == 220)
    assert count(account, name, "Invocations", "Shadow") == before


@pytest.mark.parametrize("mode", ["failing", "silent"])
def test_a_shadow_that_fails_changes_no_answer(account, mode):
    name = shadowed(account, mode)
    begun = time.monotonic()
    assert [account.invoke(name) for _ in range(5)] == ["production x"] * 5
    # A silent shadow is silent for 30 seconds.
    assert time.monotonic() - begun < 20
    if mode == "failing":
        eventually(lambda: count(account, name, "Invocation5XXErrors", "Shadow") == 5)
    assert count(account, name, "InvocationModelErrors", "AllTraffic") == 0


def test_copies_that_would_be_too_many_are_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr(api, "_MOST_COPIES", 2)
    with started(tmp_path) as account:
        name = shadowed(account, "silent")
        assert [account.invoke(name) for _ in range(5)] == ["production x"] * 5
        # Each copy is counted when its connection ends.
        account.delete(name)
        eventually(lambda: count(account, name, "Invocations", "AllTraffic") == 5)
        eventually(lambda: count(account, name, "Invocations", "Shadow") == 2)


def test_a_shadow_that_does_not_start_fails_the_endpoint(account):
    reason = shadowed(account, "dead", start=Account.failure)
    assert "production variant Shadow did not pass the ping" in reason


def test_what_sagemaker_refuses(account):
    def refusal(production: int, shadows: int, name: str = "Shadow") -> str:
        model = account.model()
        return refused(
            account.config,
            *(account.variant(model, f"Variant{index}") for index in range(production)),
            ShadowProductionVariants=[
                account.variant(model, f"{name}{index or ''}") for index in range(shadows)
            ],
        )

    one_each = (
        "With ShadowProductionVariants, you can only specify one variant for ProductionVariants "
        "and one variant for ShadowProductionVariants."
    )
    assert refusal(2, 1) == one_each
    assert refusal(1, 2) == one_each
    assert refusal(1, 1, "Variant0") == 'Duplicate variant name "Variant0".'
