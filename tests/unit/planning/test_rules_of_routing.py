"""Routing by prefix, and floors and placement of copies: what is refused and what is advised."""

from typing import Any

import pytest

from slipway.planning.advice import Subject, packed_over_zones, prefixes_need_instances
from slipway.planning.families import deployment_of
from slipway.planning.plan import ArtifactPlan
from slipway.planning.rules import asynchronous, components
from tests.support.projects import LOCAL, model_config
from tests.unit.planning.rule_findings import findings

PREFIXES = {
    "routing": "prefix_aware",
    "prefix_routing": {"prefix_length": 4096, "concurrency_threshold": 8},
}
COPIES = {"max_copies": 2, "target_concurrent_requests_per_copy": 5}
QUEUE = {"mode": "async", "async_inference": {"input": "s3://in/", "output": "s3://out/"}}


def advised(advice: Any, **endpoint: Any) -> list[str]:
    deployment = deployment_of(model_config(endpoint=endpoint), LOCAL)
    artifact = ArtifactPlan("bucket", "0" * 64, 1, 1, "cpu", published=True)
    return [each.message for each in advice(Subject(deployment, artifact))]


def of_copies(**settings: Any) -> dict[str, Any]:
    return {"mode": "scale_to_zero", "scale_to_zero": {**COPIES, **settings}}


@pytest.mark.parametrize(
    ("endpoint", "message"),
    [
        (PREFIXES, None),
        (PREFIXES | {"prefix_routing": None}, "`routing: prefix_aware` needs the section"),
        (PREFIXES | QUEUE, "a queue routes by no prefix"),
        (PREFIXES | {"routing": "random"}, "nothing reads `prefix_routing` with `routing: random`"),
    ],
)
def test_a_routing_by_prefix_has_its_numbers(endpoint, message):
    found = [
        text for _, text, _ in findings(asynchronous.prefixes_have_their_section, endpoint=endpoint)
    ]
    assert [text.startswith(message or "") for text in found] == [True] * bool(message)


def test_one_instance_looks_at_no_prefix():
    [message] = advised(prefixes_need_instances, **PREFIXES, instance_count=1)
    assert message.endswith("only where 2 instances can answer a request, and there is 1 at most.")
    assert advised(prefixes_need_instances, **PREFIXES, instance_count=2) == []
    assert advised(prefixes_need_instances, **PREFIXES, **of_copies()) == []


def test_packed_copies_are_first_balanced_over_zones():
    [message] = advised(packed_over_zones, **of_copies(placement_strategy="binpack"))
    assert message.endswith("Set `max_zone_imbalance: 2` to pack them together.")
    together = of_copies(placement_strategy="binpack", max_zone_imbalance=2)
    assert advised(packed_over_zones, **together) == []
    assert advised(packed_over_zones, **of_copies(placement_strategy="spread")) == []


def test_a_guest_has_no_instances_of_its_own():
    guest = of_copies(endpoint_of="search", min_instance_count=1, consolidation={})
    found = [
        path
        for path, _, _ in findings(
            components.settings_belong_to_the_host, endpoint=guest | PREFIXES
        )
    ]
    assert found == [
        "endpoint.prefix_routing",
        "endpoint.scale_to_zero.min_instance_count",
        "endpoint.scale_to_zero.consolidation",
        "endpoint.routing",
    ]
