"""Autoscaling: schedules, steps, the use of GPUs, the alarm of a full fleet."""

from typing import Any

import pytest

from slipway.planning.partial import rules_of
from slipway.planning.rules import schedules
from slipway.planning.rules.schedules import (
    gpu_steps_can_be_reached,
    gpu_target_needs_gpus,
    steps_ascend,
    steps_fit_the_range,
)
from tests.unit.planning.rule_findings import findings, only, refused_fields, scaling

SCHEDULE = {
    "name": "workday",
    "at": "cron(0 7 ? * MON-FRI *)",
    "min_instance_count": 2,
    "max_instance_count": 6,
}
SCALING = scaling(1, 4)


def scheduled(*over: dict[str, Any]) -> dict[str, Any]:
    return {"autoscaling": SCALING | {"schedules": [SCHEDULE | each for each in over]}}


@pytest.mark.parametrize(
    "over",
    [
        {"time_zone": "Europe/Zurich"},
        {"at": "rate(12 hours)"},
        {"at": "at(2027-03-01T06:00:00)", "time_zone": "America/Los_Angeles"},
    ],
)
def test_schedules_that_aws_takes_are_fine(over: dict[str, Any]):
    for rule in rules_of(schedules):
        assert findings(rule, **scheduled(over)) == []
        assert findings(rule, autoscaling=None) == []


def test_names_are_told_apart():
    assert refused_fields(schedules.schedules_are_told_apart, **scheduled({}, {})) == [
        "autoscaling.schedules[1].name"
    ]


_FORMS = "Write it as `cron(0 7 ? * MON-FRI *)`, `rate(1 day)` or `at(2027-01-31T07:00:00)`."


@pytest.mark.parametrize(
    ("at", "message"),
    [
        (
            "cron(0 7 * * MON *)",
            "cron(0 7 * * MON *) needs `?` as its day of the month or as its day of the week, and "
            "not as both",
        ),
        (
            "cron(0 7 ? * MON)",
            "cron(0 7 ? * MON) has 5 fields, and needs 6: minutes, hours, day of the month, "
            "month, day of the week, year",
        ),
        ("cron(0 24 ? * MON *)", "'24' is no hours: use 0 to 23"),
        ("cron(0 7 ? * MO *)", "'MO' is no day of the week: use 1 to 7, or SUN to SAT"),
        ("rate(1 days)", "'1 days' needs the unit `day`"),
        ("rate(0 days)", "'0 days' is not a rate such as `1 hour` or `5 minutes`"),
        ("at(2027-02-30T07:00:00)", "'2027-02-30T07:00:00' is not a time of the form "
         "yyyy-mm-ddThh:mm:ss"),
    ],
)  # fmt: skip
def test_a_time_has_a_form_that_aws_takes(at: str, message: str):
    assert findings(schedules.schedules_have_times, **scheduled({"at": at})) == [
        ("autoscaling.schedules[0].at", message, _FORMS)
    ]


def test_schedules_have_times():
    over = {"time_zone": "Europe/Zuerich"}
    assert refused_fields(schedules.schedules_have_times, **scheduled(over)) == [
        "autoscaling.schedules[0].time_zone"
    ]
    over = {"at": "rate(1 day)", "time_zone": "Europe/Zurich"}
    assert refused_fields(schedules.schedules_have_times, **scheduled(over)) == [
        "autoscaling.schedules[0].time_zone"
    ]


def test_bounds_are_in_order_and_keep_a_realtime_endpoint_alive():
    over = {"min_instance_count": 7}, {"min_instance_count": 0}
    assert findings(schedules.schedules_have_bounds, **scheduled(*over)) == [
        (
            "autoscaling.schedules[0].min_instance_count",
            "the minimum, 7, is above the maximum, 6",
            "Raise `max_instance_count` or lower `min_instance_count`.",
        ),
        (
            "autoscaling.schedules[1].min_instance_count",
            "a realtime endpoint keeps one instance at least",
            "Use 1 or more; `mode: async` and `mode: scale_to_zero` can go to 0.",
        ),
    ]


def of_copies(*over: dict[str, Any]) -> dict[str, Any]:
    copies = {"name": "workday", "at": "rate(1 day)", "min_copies": 0, "max_copies": 2}
    section = {"max_copies": 2, "target_concurrent_requests_per_copy": 5}
    section["schedules"] = [copies | each for each in over]
    return {
        "endpoint": {"mode": "scale_to_zero", "scale_to_zero": section},
        "autoscaling": None,
    }


def test_copies_have_the_same_rules_and_may_go_to_zero():
    config = of_copies({}, {"min_copies": 3, "at": "rate(1 days)", "time_zone": "Europe/Zuerich"})
    places = [
        (place, message)
        for rule in rules_of(schedules)
        for place, message, _ in findings(rule, **config)
    ]
    second = "endpoint.scale_to_zero.schedules[1]"
    assert places == [
        (f"{second}.name", "there are two schedules 'workday'"),
        (f"{second}.time_zone", "there is no time zone 'Europe/Zuerich'"),
        (f"{second}.at", "'1 days' needs the unit `day`"),
        (
            f"{second}.time_zone",
            "a rate is the same in every time zone: `time_zone` would have no effect",
        ),
        (f"{second}.min_copies", "the minimum, 3, is above the maximum, 2"),
    ]
    [(_, _, remedy)] = findings(schedules.schedules_have_bounds, **config)
    assert remedy == "Raise `max_copies` or lower `min_copies`."


class TestCapacityAlarm:
    rule = staticmethod(schedules.capacity_alarm_can_end)
    alarms = {"model_latency_p99_milliseconds": 600, "at_max_capacity": True}  # noqa: RUF012

    def test_capacity_alarm_can_end(self):
        assert findings(self.rule, alarms=self.alarms, autoscaling=SCALING) == []
        assert only(findings(self.rule, alarms=self.alarms)) == (
            "alarms.at_max_capacity",
            "without `autoscaling` the fleet has no maximum",
            "Add `autoscaling`, or remove this alarm.",
        )
        constant = SCALING | {"min_instance_count": 4}
        assert only(findings(self.rule, alarms=self.alarms, autoscaling=constant)) == (
            "alarms.at_max_capacity",
            "the fleet always has 4, so this alarm would never end",
            "Raise `max_instance_count`, or remove this alarm.",
        )
        # A schedule makes it grow.
        constant |= {"schedules": [SCHEDULE]}
        assert findings(self.rule, alarms=self.alarms, autoscaling=constant) == []
        copies: dict[str, Any] = {"max_copies": 1, "target_concurrent_requests_per_copy": 5}
        endpoint = {"mode": "scale_to_zero", "scale_to_zero": copies}
        assert only(findings(self.rule, alarms=self.alarms, endpoint=endpoint)) == (
            "alarms.at_max_capacity",
            "there is one copy at most, so every wake would raise this alarm",
            "Raise `max_copies`, or remove this alarm.",
        )
        copies["max_copies"] = 2
        assert findings(self.rule, alarms=self.alarms, endpoint=endpoint) == []
        schedule = {"name": "workday", "at": "rate(1 day)", "min_copies": 0, "max_copies": 2}
        copies |= {"max_copies": 1, "schedules": [schedule]}
        assert findings(self.rule, alarms=self.alarms, endpoint=endpoint) == []


def stepped(*steps: tuple[float, int], **over: Any) -> dict[str, Any]:
    listed = [{"from_times_target": times, "add_instances": count} for times, count in steps]
    return {"autoscaling": scaling(2, 6) | {"steps": listed} | over}


def test_steps_that_ascend_within_the_range_are_fine():
    for rule in (steps_ascend, steps_fit_the_range):
        assert findings(rule, **stepped((1.5, 1), (3, 4))) == []
        assert findings(rule, **stepped()) == []
        assert findings(rule, autoscaling=None) == []


def test_steps_ascend():
    assert findings(steps_ascend, **stepped((3, 1), (2, 2), (2, 3))) == [
        (
            "autoscaling.steps[1].from_times_target",
            "the step from 2 times the target follows one from 3",
            "Sort the steps by `from_times_target`, and use each value once.",
        ),
        (
            "autoscaling.steps[2].from_times_target",
            "the step from 2 times the target follows one from 2",
            "Sort the steps by `from_times_target`, and use each value once.",
        ),
    ]
    assert only(findings(steps_ascend, **stepped((2, 2), (3, 2)))) == (
        "autoscaling.steps[1].add_instances",
        "from 3 times the target it adds 2, and below that 2",
        "Let each step add more than the step before it, or remove it.",
    )


def test_a_step_fits_the_range_of_the_fleet():
    found = [
        (
            "autoscaling.steps[0].add_instances",
            "it adds 5, and the fleet can never grow by more than 4",
            "Add fewer instances, or raise `max_instance_count`.",
        )
    ]
    assert findings(steps_fit_the_range, **stepped((2, 5))) == found
    night = {
        "name": "night",
        "at": "rate(1 day)",
        "min_instance_count": 1,
        "max_instance_count": 6,
    }
    assert findings(steps_fit_the_range, **stepped((2, 5), schedules=[night])) == []
    # A contradictory range is the finding of another rule.
    assert findings(steps_fit_the_range, **stepped((2, 5), max_instance_count=1)) == []


BY_GPU = {
    "min_instance_count": 1,
    "max_instance_count": 4,
    "target_gpu_utilization_percent": 60,
}


def scaled(*instances: str, **over: Any) -> dict[str, Any]:
    return {"endpoint": {"instances": list(instances)}, "autoscaling": BY_GPU | over}


@pytest.mark.parametrize("instances", [("ml.g4dn.xlarge",), ("ml.g4dn.xlarge", "ml.g5.xlarge")])
def test_types_with_as_many_gpus_are_fine(instances: tuple[str, ...]):
    assert findings(gpu_target_needs_gpus, **scaled(*instances)) == []
    assert findings(gpu_target_needs_gpus, autoscaling=None) == []


def test_gpu_target_needs_gpus():
    assert only(findings(gpu_target_needs_gpus, **scaled("ml.c5.xlarge"))) == (
        "autoscaling.target_gpu_utilization_percent",
        "ml.c5.xlarge has no GPU, and autoscaling would follow the use of its GPUs",
        "Scale by `target_concurrent_requests_per_instance`, or use types with GPUs.",
    )
    requests = {
        "target_gpu_utilization_percent": None,
        "target_concurrent_requests_per_instance": 8,
    }
    assert findings(gpu_target_needs_gpus, **scaled("ml.c5.xlarge", **requests)) == []
    assert only(
        findings(gpu_target_needs_gpus, **scaled("ml.g4dn.xlarge", "ml.g4dn.12xlarge"))
    ) == (
        "endpoint.instances[1]",
        "ml.g4dn.12xlarge has 4 GPUs and ml.g4dn.xlarge has 1 GPU; the metric `GPUUtilization` "
        "adds up over the GPUs of an instance, so no one target is right for both",
        "Scale by `target_concurrent_requests_per_instance`, or use types with the same number "
        "of GPUs.",
    )


def test_a_step_beyond_full_use_is_never_reached():
    steps = [
        {"from_times_target": 1.5, "add_instances": 1},
        {"from_times_target": 2, "add_instances": 2},
    ]
    assert only(findings(gpu_steps_can_be_reached, **scaled("ml.g4dn.xlarge", steps=steps))) == (
        "autoscaling.steps[1].from_times_target",
        "the step begins at 120 % use of the GPUs, which is never reached",
        "Use 1.66 times the target at most, or lower the target.",
    )
