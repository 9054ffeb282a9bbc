"""Endpoints that scale to zero: refusals word for word, and configs that pass."""

from typing import Any

from slipway.planning.rules import capacity, components, exclusions, schedules
from tests.unit.planning.fleet_findings import messages, variants
from tests.unit.planning.rule_findings import all_of, findings, only, refused_fields, scaling


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
