"""When the instances of components are added and released, in seconds."""

from collections import Counter
from typing import Any

from slipway.embedded_aws.hosting.fleets.instance_group import InstanceGroup


def group(lowest: int = 0, highest: int = 3, **scaling: Any) -> InstanceGroup:
    declared = {
        "VariantName": "main",
        "InstanceType": "ml.g5.xlarge",
        "InitialInstanceCount": 1,
        "InitialVariantWeight": 1.0,
        "ManagedInstanceScaling": {
            "Status": "ENABLED",
            "MinInstanceCount": lowest,
            "MaxInstanceCount": highest,
            **scaling,
        },
    }
    return InstanceGroup(declared, {}, "config")


def test_missing_instances_come_at_once():
    instances = group()
    instances.follow(3, 0.0)
    assert instances.instance_count == 3


def test_idle_instances_go_after_ten_minutes():
    instances = group()
    counts = []
    for now_seconds in (0.0, 1.0, 600.0, 600.9, 601.0):
        instances.follow(1 if now_seconds == 0 else 0, now_seconds)
        counts.append(instances.instance_count)
    assert counts == [1, 1, 1, 1, 0]


def test_ten_minutes_begin_anew_after_a_copy():
    instances = group()
    for now_seconds, needed in ((0.0, 0), (590.0, 1), (595.0, 0), (1194.0, 0)):
        instances.follow(needed, now_seconds)
    assert instances.instance_count == 1
    instances.follow(0, 1195.0)
    assert instances.instance_count == 0


def test_bounds_hold():
    instances = group(lowest=1, highest=2)
    instances.follow(5, 0.0)
    assert instances.instance_count == 2
    instances.follow(0, 1.0)
    instances.follow(0, 601.0)
    assert instances.instance_count == 1


def test_copies_are_moved_together_when_nothing_changed_for_the_cooldown():
    instances = group(ScaleInPolicy={"Strategy": "CONSOLIDATION", "CooldownInMinutes": 5})
    two, one = Counter({"chat": 2}), Counter({"chat": 1})
    seen = [(two, 10.0), (two, 309.0), (one, 310.0), (one, 609.0), (one, 610.0)]
    assert [instances.is_due(*each) for each in seen] == [False, False, False, False, True]
    assert not group().is_due(two, 9_999.0)


def test_a_released_instance_is_forgotten_and_the_next_is_in_the_other_zone():
    instances = group()
    [first] = instances.machines(())
    instances.instance_count = 2
    assert [each.zone for each in instances.machines([first])] == [0, 1]
    second = instances.machines([first])[1]
    instances.instance_count = 1
    assert instances.machines([second]) == [second]
