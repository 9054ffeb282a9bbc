"""What an edit does, in words: the verdict, the fleet that starts, and each difference.

`tests/synth/test_every_field.py` compares every field with the templates, and
`tests/operations/test_consequences.py` deploys edits.
"""

from dataclasses import replace
from typing import Any

import pytest

from slipway.planning.consequences import Consequence, consequences, consequences_of
from tests.support.plans import plan_for, with_environment
from tests.support.projects import model_config
from tests.unit.planning.models import scaling

SCALING = scaling(2, 6)
COPIES = {"max_copies": 2, "target_concurrent_requests_per_copy": 5}
VARIANTS = [{"name": "one", "weight": 1}, {"name": "two", "weight": 1}]


def told(before: dict[str, Any], after: dict[str, Any]) -> list[tuple[str, str]]:
    """Returns the rows of an edit."""
    plans = [plan_for(model_config(**sections)) for sections in (before, after)]
    return list(consequences(*plans).as_rows())


def test_the_strongest_consequence_is_the_verdict_and_comes_first():
    before = {"tags": {"team": "a"}}
    after = {"tags": {"team": "b"}, "endpoint": {"routing": "random", "log_retention_days": 7}}
    assert told(before, after) == [
        (
            "deploy",
            "new fleet: 2 x ml.g4dn.xlarge start beside the old fleet, within minutes; quota of 4",
        ),
        (
            "new fleet",
            "endpoint.routing: least_outstanding_requests -> random (an endpoint configuration is "
            "made anew)",
        ),
        ("in place", "tag team: a -> b (the fleet stays)"),
        ("in place", "endpoint.log_retention_days: 30 -> 7 (the fleet stays)"),
    ]
    assert told(before, {})[0] == ("deploy", "in place: the fleet stays")


@pytest.mark.parametrize(
    ("sections", "fleet"),
    [
        # The quota of another type has no old fleet in it.
        (
            {"endpoint": {"instances": ["ml.g4dn.2xlarge"]}},
            "2 x ml.g4dn.2xlarge start beside the old fleet, within minutes; quota of 2",
        ),
        (
            {"endpoint": {"instances": ["ml.g4dn.2xlarge", "ml.g4dn.xlarge"]}},
            "2 x ml.g4dn.2xlarge, or ml.g4dn.xlarge start beside the old fleet, within minutes; "
            "quota of 4",
        ),
        (
            {"autoscaling": SCALING},
            "2 to 6 x ml.g4dn.xlarge start beside the old fleet, within minutes; quota of 12",
        ),
        (
            {
                "endpoint": {"instance_count": 4},
                "rollout": {"strategy": "rolling", "step_percent": 25},
            },
            "4 x ml.g4dn.xlarge start in batches of 1; quota of 5",
        ),
        (
            {"endpoint": {"shadow": {"sampling_percent": 50, "instance_count": 1}}},
            "2 x ml.g4dn.xlarge start beside the old fleet, within minutes; quota of 4 and "
            "1 x ml.g4dn.xlarge start beside the old fleet, within minutes; quota of 2",
        ),
    ],
)
def test_the_fleet_and_its_quota(sections: dict[str, Any], fleet: str):
    assert told({}, sections)[0] == ("deploy", f"new fleet: {fleet}")


def test_a_section_that_comes_or_goes_is_one_difference():
    found = consequences(plan_for(model_config()), plan_for(model_config(autoscaling=SCALING)))
    assert [each.setting for each in found.effects] == ["autoscaling"]
    # A tag is no section.
    tags = {"a": "1", "a.b": "1", "x of y": "1"}
    found = consequences(plan_for(model_config(tags=tags)), plan_for(model_config()))
    assert [each.setting for each in found.effects] == ["tag a", "tag a.b", "tag x of y"]


def test_variants_are_told_by_name():
    before = {"endpoint": {"variants": VARIANTS}}
    other = [VARIANTS[0], VARIANTS[1] | {"instances": ["ml.g4dn.2xlarge"]}]
    rows = told(before, {"endpoint": {"variants": other}})
    assert [text.partition(" (")[0] for _, text in rows[1:]] == [
        "endpoint.instances of two: ml.g4dn.xlarge -> ml.g4dn.2xlarge"
    ]
    assert rows[0][1].endswith(
        "2 x ml.g4dn.2xlarge start beside the old fleet, within minutes; quota of 2"
    )
    renamed = [VARIANTS[0], VARIANTS[1] | {"name": "three"}]
    rows = told(before, {"endpoint": {"variants": renamed}})
    assert [text.partition(" (")[0] for _, text in rows[1:]] == [
        "endpoint.variants: one, two -> one, three"
    ]


def test_copies_are_replaced_and_their_bounds_are_not():
    sleeping = {"mode": "scale_to_zero", "instance_count": 1, "scale_to_zero": COPIES}
    larger = sleeping | {"scale_to_zero": COPIES | {"copy_memory_mib": 2048}}
    assert told({"endpoint": sleeping}, {"endpoint": larger})[0] == (
        "deploy",
        "new fleet: new copies start beside the old ones, on instances with room for a batch",
    )
    rolling = {"strategy": "rolling", "step_percent": 25}
    rows = told({"endpoint": sleeping}, {"endpoint": sleeping, "rollout": rolling})
    assert {label for label, _ in rows[1:]} == {"in place"}
    # A guest has no instances of its own.
    guest = sleeping | {"scale_to_zero": COPIES | {"endpoint_of": "host"}}
    larger = guest | {"instances": ["ml.g4dn.2xlarge"]}
    assert told({"endpoint": guest}, {"endpoint": larger})[0] == ("deploy", "no change")
    moved = sleeping | {"scale_to_zero": COPIES | {"endpoint_of": "another"}}
    rows = told({"endpoint": guest}, {"endpoint": moved})
    assert rows[0] == ("deploy", "refused by AWS: no update does it; `cdk destroy`, then deploy")


def test_the_environments_settings_change_in_place():
    plan = plan_for(model_config())
    for other in (
        plan_for(model_config("other")),
        with_environment(plan, account="999999999999"),
        with_environment(plan, name="staging"),
        with_environment(plan, project="search"),
    ):
        assert consequences(plan, other).verdict is Consequence.DESTROY
    # The environment's settings change in place.
    plan = plan_for(model_config())
    boundary = "arn:aws:iam::123456789012:policy/limits"
    other = with_environment(plan, log_key="artifact", permissions_boundary_arn=boundary)
    found = consequences(plan, other)
    assert found.verdict is Consequence.IN_PLACE
    assert len(found.effects) == 2


def test_every_effect_has_a_source_and_is_data():
    plan = plan_for(model_config())
    other = replace(plan, image=replace(plan.image, tag="other"))
    (effect,) = consequences(plan, other).effects
    assert vars(effect) == {
        "consequence": "new fleet",
        "reason": "a model is never changed, but made anew",
        "source": "AWS's provider schema of AWS::SageMaker::Model",
        "setting": "image",
        "before": plan.image.uri,
        "after": other.image.uri,
    }
    plan = plan_for(model_config())
    found = consequences(plan, plan)
    assert (found.effects, found.verdict, found.fleet) == ((), None, None)
    assert list(found.as_rows()) == [("deploy", "no change")]


def test_a_setting_of_a_live_variant_is_found_in_the_table():
    plan = plan_for(model_config(endpoint={"variants": VARIANTS}, autoscaling=SCALING))
    differences = [
        ("autoscaling.max_instance_count of one", "4", "6"),
        ("autoscaling.min_instance_count of two", None, "2"),
        ("autoscaling.max_instance_count of two", "6", "6"),
        ("variable A", None, "b"),
    ]
    found = consequences_of(differences, plan)
    assert {each.setting: each.consequence for each in found.effects} == {
        "autoscaling of two": "new fleet",
        "variable A": "new fleet",
    }
