"""Rules about asynchronous endpoints."""

from typing import Any

from slipway.planning.rules import asynchronous, exclusions, surroundings
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
