"""Copies of inference components, and their instances, in numbers alone."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from slipway.embedded_aws.hosting.fleets.instance_group import InstanceGroup
from slipway.embedded_aws.hosting.fleets.machine import Machine
from slipway.embedded_aws.hosting.fleets.placement import (
    Copy,
    Size,
    emptied,
    place,
    size_of_copy,
    size_of_instance,
)

INSTANCE = Size(cores=4, accelerators=1, memory_mb=16_384)


def of(**requirements: Any) -> Size:
    return size_of_copy({"MinMemoryRequiredInMb": 128, **requirements})


SMALL, HALF = of(), of(MinMemoryRequiredInMb=8192)
ON_GPU = of(NumberOfAcceleratorDevicesRequired=1)


@pytest.mark.parametrize(
    ("instance_type", "size"),
    [
        ("ml.g5.12xlarge", Size(48, 4, 196_608)),
        ("ml.inf2.xlarge", Size(4, 1, 16_384)),
        ("ml.m5.xlarge", Size(4, 0, 16_384)),
        ("ml.p2.xlarge", None),
    ],
)
def test_sizes_of_instances_are_those_of_ec2(instance_type, size):
    assert size_of_instance(instance_type) == size


def placed(
    sizes: Sequence[Size],
    zones: Sequence[int],
    scheduling: Mapping[str, Any] | None = None,
    instance: Size | None = INSTANCE,
) -> list[int | None]:
    machines, copies = [Machine(zone) for zone in zones], list[Copy]()
    found: list[int | None] = []
    for size in sizes:
        machine = place(instance, machines, copies, Copy("chat", size), scheduling or {})
        found.append(None if machine is None else machines.index(machine))
        if machine is not None:
            copies.append(Copy("chat", size, machine))
    return found


@pytest.mark.parametrize(
    ("sizes", "machines"),
    [
        ([SMALL] * 3, [0, 0, 0]),
        ([HALF] * 5, [0, 0, 1, 1, None]),
        ([ON_GPU] * 3, [0, 1, None]),
        ([of(NumberOfCpuCoresRequired=1.5)] * 3, [0, 0, 1]),
        ([ON_GPU, HALF, ON_GPU, HALF], [0, 0, 1, 1]),
        ([of(MinMemoryRequiredInMb=16_385)], [None]),
    ],
)
def test_instances_are_filled_one_after_the_other(sizes, machines):
    assert placed(sizes, [0, 1]) == machines


def test_an_unknown_type_holds_any_number_of_copies():
    assert placed([ON_GPU] * 3, [0], instance=None) == [0, 0, 0]
    assert placed([ON_GPU], [], instance=None) == [None]


def balanced(strategy: str, imbalance: int) -> dict[str, Any]:
    balance = {"EnforcementMode": "PERMISSIVE", "MaxImbalance": imbalance}
    return {"PlacementStrategy": strategy, "AvailabilityZoneBalance": balance}


@pytest.mark.parametrize(
    ("scheduling", "machines"),
    [
        ({"PlacementStrategy": "SPREAD"}, [0, 1, 2, 0]),
        ({"PlacementStrategy": "BINPACK"}, [0, 0, 1, 1]),
        # The third instance is the only one of its zone.
        (balanced("BINPACK", 0), [0, 2, 0, 2]),
        (balanced("BINPACK", 2), [0, 0, 2, 2]),
        (balanced("SPREAD", 0), [0, 2, 1, 2]),
    ],
)
def test_copies_are_spread_or_packed_within_balanced_zones(scheduling, machines):
    assert placed([HALF] * 4, [0, 0, 1], scheduling) == machines


def test_a_zone_without_room_does_not_stop_a_copy():
    assert placed([HALF] * 5, [0, 0, 1], balanced("SPREAD", 0))[-1] == 0


def test_copies_leave_the_instance_with_the_fewest():
    first, second = Machine(0), Machine(1)
    copies = [Copy("chat", SMALL, first), Copy("chat", SMALL, first), Copy("ocr", SMALL, second)]
    moved = emptied(INSTANCE, copies, {})
    assert {copy.machine for copy in moved} == {first}
    assert emptied(INSTANCE, moved, {}) is None
    full = [Copy("chat", ON_GPU, first), Copy("ocr", ON_GPU, second)]
    assert emptied(INSTANCE, full, {}) is None


def test_a_balance_of_zones_keeps_copies_apart():
    copies = [Copy("chat", SMALL, Machine(zone)) for zone in (0, 1)]
    assert emptied(INSTANCE, copies, {"chat": balanced("BINPACK", 9)}) is None
    assert emptied(INSTANCE, copies, {"chat": {"PlacementStrategy": "BINPACK"}}) is not None


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
