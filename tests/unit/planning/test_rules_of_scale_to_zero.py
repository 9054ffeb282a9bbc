"""Endpoints that scale to zero: the plan of copies, refusals, and configs that pass."""

from typing import Any

import pytest

from slipway.config.sections.endpoint import Endpoint
from slipway.facts.instances import instance_types
from slipway.planning.component import ComponentPlan, component_plan
from slipway.planning.rules import capacity, components, exclusions, schedules
from tests.unit.planning.rule_findings import (
    all_of,
    findings,
    messages,
    only,
    refused_fields,
    scaling,
    variants,
)


class TestScaleToZero:
    def endpoint(self, **more: Any) -> dict[str, Any]:
        component = {
            "copy_memory_mib": 8192,
            "max_copies": 2,
            "target_concurrent_requests_per_copy": 5,
        }
        component |= more.pop("component", {})
        return {
            "mode": "scale_to_zero",
            "scale_to_zero": component,
            "instance_count": 1,
            **more,
        }

    def test_modes_exclude_settings(self):
        rule = all_of(exclusions.RULES)
        assert findings(rule, endpoint=self.endpoint()) == []
        both = self.endpoint(**variants(("a", 1), ("b", 1)), shadow={"sampling_percent": 50})
        assert messages(rule, endpoint=both) == [
            (
                f"endpoint.{name}",
                f"`{name}` and `mode: scale_to_zero` exclude each other: copies of an inference "
                "component take the requests",
            )
            for name in ("variants", "shadow")
        ]
        assert findings(rule, endpoint=variants(("a", 1), ("b", 1))) == []
        rule = all_of(exclusions.RULES)
        more = {"data_capture": {"destination": "s3://captured/"}}
        assert refused_fields(rule, endpoint=self.endpoint(**more)) == ["endpoint.data_capture"]
        assert findings(rule, endpoint=self.endpoint()) == []
        assert findings(rule, endpoint=more) == []

    def test_the_instances_follow_the_copies(self):
        rule = all_of(exclusions.RULES)
        assert findings(rule, endpoint=self.endpoint()) == []
        endpoint = self.endpoint(instance_count=2)
        assert refused_fields(rule, endpoint=endpoint, autoscaling=scaling(0, 2)) == [
            "autoscaling",
            "endpoint.instance_count",
        ]
        # The rules of instances say nothing about the same section.
        for other in (capacity.scaling_target_fits_mode, schedules.capacity_alarm_can_end):
            assert (
                findings(
                    other,
                    endpoint=endpoint,
                    autoscaling=scaling(0, 2),
                    alarms={"at_max_capacity": True},
                )
                == []
            )
        assert findings(rule, endpoint={"instance_count": 2}, autoscaling=scaling(1, 2)) == []

    def test_copies_have_one_target(self):
        rule = components.component_has_one_target
        assert findings(rule, endpoint=self.endpoint()) == []
        both = {"target_invocations_per_copy_per_minute": 60}
        assert only(findings(rule, endpoint=self.endpoint(component=both))) == (
            "endpoint.scale_to_zero.target_invocations_per_copy_per_minute",
            "there are 2 targets: target_concurrent_requests_per_copy, "
            "target_invocations_per_copy_per_minute",
            "Keep one of them.",
        )
        none = {"target_concurrent_requests_per_copy": None}
        assert refused_fields(rule, endpoint=self.endpoint(component=none)) == [
            "endpoint.scale_to_zero"
        ]

    def test_a_copy_reserves_the_same_on_every_type(self):
        rule = components.copies_are_alike
        alike = {"instances": ["ml.g4dn.xlarge", "ml.g4dn.2xlarge"]}
        assert findings(rule, endpoint=self.endpoint(**alike)) == []
        gpus = {"instances": ["ml.g4dn.xlarge", "ml.g4dn.12xlarge"]}
        assert refused_fields(rule, endpoint=self.endpoint(**gpus)) == ["endpoint.scale_to_zero"]
        one = {"accelerators_per_copy": 1}
        assert findings(rule, endpoint=self.endpoint(component=one, **gpus)) == []
        processors = {"instances": ["ml.c5.xlarge", "ml.c5.2xlarge"]}
        assert only(messages(rule, endpoint=self.endpoint(**processors))) == (
            "endpoint.scale_to_zero",
            "without `vcpus_per_copy` a copy gets other numbers of virtual processors on each "
            "type: 3 of ml.c5.xlarge, 6 of ml.c5.2xlarge",
        )
        assert findings(rule, endpoint=gpus) == []

    def test_a_copy_fits_the_instance(self):
        rule = components.component_fits_instance
        assert findings(rule, endpoint=self.endpoint()) == []
        # ml.g4dn.xlarge: 4 virtual processors, 16 GiB, one T4.
        large = {"copy_memory_mib": 16_385, "vcpus_per_copy": 4.5, "accelerators_per_copy": 2}
        assert findings(rule, endpoint=self.endpoint(component=large)) == [
            (f"endpoint.scale_to_zero.{field}", message, remedy)
            for field, message, remedy in [
                (
                    "copy_memory_mib",
                    "a copy needs 16385 MiB of memory; ml.g4dn.xlarge has 16384",
                    "Lower it, or choose a larger instance type.",
                ),
                (
                    "vcpus_per_copy",
                    "a copy needs 4.5 virtual processors; ml.g4dn.xlarge has 4",
                    "Lower it, or choose a larger instance type.",
                ),
                (
                    "accelerators_per_copy",
                    "a copy needs 2 accelerators; ml.g4dn.xlarge has 1",
                    "Lower it, or choose a larger instance type.",
                ),
            ]
        ]
        exact = {"copy_memory_mib": 16_384, "vcpus_per_copy": 4, "accelerators_per_copy": 1}
        assert findings(rule, endpoint=self.endpoint(component=exact)) == []


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
def test_a_copys_share_of_an_instance(
    instance: str,
    section: dict[str, Any],
    accelerators: int | None,
    vcpus: float | None,
    fitting: int,
    instances: int,
) -> None:
    plan = planned(instance, **section)
    assert plan.accelerators_per_copy == accelerators
    assert plan.vcpus_per_copy == vcpus
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
