"""Queues, routing by prefix, and placement of copies: refusals, advice, and configs that pass."""

from typing import Any

import pytest

from slipway.planning.advice import Subject, packed_over_zones, prefixes_need_instances
from slipway.planning.families import deployment_of
from slipway.planning.plan import ArtifactPlan
from slipway.planning.rules import asynchronous, components, exclusions, surroundings
from tests.support.projects import LOCAL, model_config
from tests.unit.planning.rule_findings import all_of, findings, only, refused_fields

_PLACES = {"input": "s3://requests/", "output": "s3://answers/"}
_KEY = "arn:aws:kms:{}:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"


def queued(**more: Any) -> dict[str, Any]:
    return {"mode": "async", "async_inference": _PLACES | more}


def test_modes_exclude_settings():
    rule = all_of(exclusions.RULES)
    variants = {"variants": [{"name": "a", "weight": 1}, {"name": "b", "weight": 1}]}
    assert refused_fields(rule, endpoint=queued() | variants) == ["endpoint.variants"]
    assert findings(rule, endpoint=variants) == []
    rule = all_of(exclusions.RULES)
    capture = {"data_capture": {"destination": "s3://captured/"}}
    assert refused_fields(rule, endpoint=queued() | capture) == ["endpoint.data_capture"]
    assert findings(rule, endpoint=capture) == []


def test_alarms_have_data():
    rule = asynchronous.alarms_have_data
    latency = {"model_latency_p99_milliseconds": 600}
    overhead = latency | {"overhead_latency_p99_milliseconds": 200}
    oldest = latency | {"oldest_request_seconds": 60}
    assert refused_fields(rule, endpoint=queued(), alarms=overhead) == [
        "alarms.overhead_latency_p99_milliseconds"
    ]
    assert only(findings(rule, alarms=oldest)) == (
        "alarms.oldest_request_seconds",
        "an endpoint with `mode: realtime` has no metric for this alarm, which would never get "
        "data",
        "Remove this alarm.",
    )
    assert findings(rule, endpoint=queued(), alarms=oldest) == []
    assert findings(rule, alarms=overhead) == []


def test_a_key_of_topics_needs_a_topic():
    rule = asynchronous.queue_settings_have_effect
    key = _KEY.format("us-east-1")
    assert refused_fields(rule, endpoint=queued(topic_key_arn=key)) == [
        "endpoint.async_inference.topic_key_arn"
    ]
    topic = "arn:aws:sns:us-east-1:123456789012:failures"
    assert findings(rule, endpoint=queued(topic_key_arn=key, error_topic_arn=topic)) == []


def test_keys_are_in_the_region_of_the_endpoint():
    rule = surroundings.output_key_is_near
    elsewhere = queued(output_key_arn=_KEY.format("eu-west-1"))
    assert refused_fields(rule, endpoint=elsewhere) == ["endpoint.async_inference.output_key_arn"]
    assert findings(rule, endpoint=queued(output_key_arn=_KEY.format("us-east-1"))) == []


PREFIXES = {
    "routing": "prefix_aware",
    "prefix_routing": {"prefix_length": 4096, "concurrency_threshold": 8},
}
COPIES = {"max_copies": 2, "target_concurrent_requests_per_copy": 5}
ASYNC = {"mode": "async", "async_inference": {"input": "s3://in/", "output": "s3://out/"}}


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
        (PREFIXES | ASYNC, "a queue routes by no prefix"),
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
