"""The plan of copies: their share of an instance, and how many instances there may be."""

from typing import Any

import pytest

from slipway.config.sections.endpoint import Endpoint
from slipway.facts.instances import instance_types
from slipway.planning.component import ComponentPlan, component_plan


def planned(*instances: str, **section: Any) -> ComponentPlan:
    section = {"max_copies": 5, "target_concurrent_requests_per_copy": 2, **section}
    endpoint = Endpoint(instances=instances, mode="scale_to_zero", scale_to_zero=section)
    plan = component_plan(endpoint, [instance_types()[each] for each in instances], "a-local")
    assert plan is not None
    return plan


@pytest.mark.parametrize(
    ("instance", "section", "accelerators", "vcpus", "fitting", "instances"),
    [
        # One copy has all GPUs, so that a copy is an instance.
        ("ml.g4dn.xlarge", {}, 1, None, 1, 5),
        ("ml.g4dn.12xlarge", {}, 4, None, 1, 5),
        ("ml.g4dn.12xlarge", {"accelerators_per_copy": 2}, 2, None, 2, 3),
        # 48 virtual processors, and 192 GiB.
        ("ml.g4dn.12xlarge", {"accelerators_per_copy": 1, "vcpus_per_copy": 15}, 1, 15, 3, 2),
        ("ml.g4dn.12xlarge", {"accelerators_per_copy": 1, "copy_memory_mib": 98304}, 1, None, 2, 3),
        # Without accelerators, more than half of the processors: again a copy is an instance.
        ("ml.c5.xlarge", {}, None, 3.0, 1, 5),
        ("ml.c5.xlarge", {"vcpus_per_copy": 1}, None, 1, 4, 2),
        ("ml.inf2.24xlarge", {"accelerators_per_copy": 2}, 2, None, 3, 2),
    ],
)  # fmt: skip
def test_a_copys_share_of_an_instance(instance, section, accelerators, vcpus, fitting, instances):
    plan = planned(instance, **section)
    assert (plan.accelerators_per_copy, plan.vcpus_per_copy) == (accelerators, vcpus)
    assert plan.copies_per_instance == fitting
    assert plan.max_instance_count == instances


def test_the_smallest_type_of_a_pool_decides_how_many_instances_there_may_be() -> None:
    plan = planned("ml.g4dn.12xlarge", "ml.g4dn.xlarge", accelerators_per_copy=1)
    assert (plan.accelerators_per_copy, plan.copies_per_instance) == (1, 1)
    assert plan.max_instance_count == 5
    # Schedules count for the most instances.
    evening = {"name": "evening", "at": "rate(1 day)", "min_copies": 0, "max_copies": 3}
    fair = {"name": "fair", "at": "at(2027-03-01T06:00:00)", "min_copies": 2, "max_copies": 9}
    plan = planned("ml.g4dn.12xlarge", accelerators_per_copy=2, schedules=[evening, fair])
    assert plan.max_instance_count == 5
    # Another mode has no component.
    endpoint = Endpoint(instances=("ml.g4dn.xlarge",))
    assert component_plan(endpoint, [instance_types()["ml.g4dn.xlarge"]], "a-local") is None
