"""When the instances of components are added and released, in seconds."""

from slipway.embedded_aws.hosting.fleets.instance_group import InstanceGroup


def group(lowest: int = 0, highest: int = 3) -> InstanceGroup:
    declared = {
        "VariantName": "main",
        "InstanceType": "ml.g5.xlarge",
        "InitialInstanceCount": 1,
        "InitialVariantWeight": 1.0,
        "ManagedInstanceScaling": {
            "Status": "ENABLED",
            "MinInstanceCount": lowest,
            "MaxInstanceCount": highest,
        },
    }
    return InstanceGroup(declared, {}, "config")


def test_missing_instances_come_at_once() -> None:
    instances = group()
    instances.follow(3, 0.0)
    assert instances.instance_count == 3


def test_idle_instances_go_after_ten_minutes() -> None:
    instances = group()
    counts = []
    for now_seconds in (0.0, 1.0, 600.0, 600.9, 601.0):
        instances.follow(1 if now_seconds == 0 else 0, now_seconds)
        counts.append(instances.instance_count)
    assert counts == [1, 1, 1, 1, 0]


def test_ten_minutes_begin_anew_after_a_copy() -> None:
    instances = group()
    for now_seconds, needed in ((0.0, 0), (590.0, 1), (595.0, 0), (1194.0, 0)):
        instances.follow(needed, now_seconds)
    assert instances.instance_count == 1
    instances.follow(0, 1195.0)
    assert instances.instance_count == 0


def test_bounds_hold() -> None:
    instances = group(lowest=1, highest=2)
    instances.follow(5, 0.0)
    assert instances.instance_count == 2
    instances.follow(0, 1.0)
    instances.follow(0, 601.0)
    assert instances.instance_count == 1
