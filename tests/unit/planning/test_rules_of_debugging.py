"""Sessions, core dumps and their key: refusals, and configs that pass."""

from typing import Any

from slipway.planning.rules import exclusions, surroundings
from tests.support.projects import LOCAL, PRODUCTION
from tests.unit.planning.rule_findings import all_of, findings, only, refused_fields

KEY = "arn:aws:kms:us-east-1:123456789012:key/0a"
DUMPS = {"destination": "s3://dumps/tiny/", "key_arn": KEY}


def opened(**more: Any) -> dict[str, Any]:
    return {"ssm_access": True, **more}


def test_a_session_needs_a_container_with_a_network() -> None:
    rule = surroundings.sessions_reach_the_container
    assert findings(rule, PRODUCTION, endpoint=opened(network_isolation=False)) == []
    assert only(findings(rule, PRODUCTION, endpoint=opened())) == (
        "endpoint.ssm_access",
        "SageMaker starts no session in a container with network isolation",
        "Add `network_isolation: false`, or remove `ssm_access`.",
    )


def test_copies_have_no_sessions() -> None:
    copies = {
        "mode": "scale_to_zero",
        "scale_to_zero": {"max_copies": 2, "target_concurrent_requests_per_copy": 1},
        "instance_count": 1,
        "network_isolation": False,
    }
    rule = all_of(exclusions.RULES)
    assert only(findings(rule, PRODUCTION, endpoint=opened(**copies))) == (
        "endpoint.ssm_access",
        "`ssm_access` and `mode: scale_to_zero` exclude each other: SageMaker ignores it for "
        "inference components",
        "Remove `ssm_access`, or set `mode: realtime`.",
    )


def test_the_embedded_aws_refuses_what_it_has_not() -> None:
    rule, endpoint = surroundings.embedded_aws_has_it, opened(core_dump=DUMPS)
    assert findings(rule, PRODUCTION, endpoint=endpoint) == []
    assert findings(rule, LOCAL, endpoint=endpoint) == [
        (
            "endpoint.ssm_access",
            "`ssm_access` has no effect in `local`: the embedded AWS has no Systems Manager",
            "Move `ssm_access` to an environment with an account, under `environments`.",
        ),
        (
            "endpoint.core_dump",
            "`core_dump` has no effect in `local`: the embedded AWS writes no core dumps",
            "Move `core_dump` to an environment with an account, under `environments`.",
        ),
    ]


def test_the_key_of_dumps_is_of_the_region() -> None:
    rule, endpoint = surroundings.dump_key_is_near, {"core_dump": DUMPS}
    assert refused_fields(rule, PRODUCTION, endpoint=endpoint) == ["endpoint.core_dump.key_arn"]
    assert refused_fields(rule, LOCAL, endpoint=endpoint) == []
