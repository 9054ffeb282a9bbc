"""Copies of inference components on instances, in numbers alone."""

from typing import Any

import pytest

from slipway.embedded_aws.hosting.fleets.placement import (
    Size,
    copies_that_fit,
    instances_for,
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
def test_sizes_of_instances_are_those_of_ec2(instance_type: str, size: Size | None) -> None:
    assert size_of_instance(instance_type) == size


@pytest.mark.parametrize(
    ("copies", "instances"),
    [
        ([], 0),
        ([SMALL] * 9, 1),
        ([HALF] * 3, 2),
        ([ON_GPU] * 3, 3),
        ([of(NumberOfCpuCoresRequired=1.5)] * 3, 2),
        # A copy without a GPU finds room beside copies with one, whatever the order.
        ([HALF, HALF, ON_GPU, ON_GPU], 2),
        ([of(MinMemoryRequiredInMb=16_385)], None),
        ([of(NumberOfAcceleratorDevicesRequired=2)], None),
    ],
)
def test_instances_are_filled_one_after_the_other(
    copies: list[Size], instances: int | None
) -> None:
    assert instances_for(INSTANCE, copies) == instances


def test_an_unknown_type_holds_any_number_of_copies() -> None:
    assert instances_for(None, [ON_GPU] * 5) == 1
    assert instances_for(None, []) == 0


def test_as_many_copies_fit_as_there_may_be_instances() -> None:
    assert copies_that_fit(INSTANCE, [ON_GPU], [ON_GPU] * 3, most_instances=2) == 1
    assert copies_that_fit(INSTANCE, [ON_GPU], [ON_GPU], most_instances=1) == 0
    assert copies_that_fit(INSTANCE, [], [HALF] * 4, most_instances=2) == 4
