"""Reserved capacity: refusals word for word, and configs that pass."""

from typing import Any

from slipway.planning.partial import rules_of
from slipway.planning.rules import surroundings
from tests.unit.planning.rule_findings import findings, refused_fields

ARN = "arn:aws:sagemaker:us-east-1:123456789012:training-plan/search"


def reserved(arn: str | None = ARN, **endpoint: Any) -> dict[str, Any]:
    return {"endpoint": {"capacity_reservation_arn": arn, **endpoint}}


def test_one_type_in_the_region_is_fine():
    for rule in rules_of(surroundings):
        assert findings(rule, **reserved()) == []
        assert findings(rule, **reserved(None, instances=["ml.g4dn.xlarge", "ml.g5.xlarge"])) == []


def test_a_pool_has_several_types():
    pool = reserved(instances=["ml.g4dn.xlarge", "ml.g4dn.2xlarge"])
    assert refused_fields(surroundings.reservation_has_one_type, **pool) == ["endpoint.instances"]


def test_a_reservation_serves_one_variant():
    both = reserved(
        variants=[{"name": "a", "weight": 1}, {"name": "b", "weight": 1}],
        shadow={"sampling_percent": 50},
    )
    assert findings(surroundings.reservation_has_one_variant, **both) == [
        (
            f"endpoint.{name}",
            f"a reservation serves one variant, and `{name}` adds others",
            f"Remove `{name}`, or the reservation.",
        )
        for name in ("variants", "shadow")
    ]


def test_a_reservation_is_in_one_region():
    elsewhere = reserved(ARN.replace("us-east-1", "eu-west-1"))
    assert refused_fields(surroundings.reservation_is_of_the_region, **elsewhere) == [
        "endpoint.capacity_reservation_arn"
    ]
