"""The larger steps of autoscaling: refusals word for word, and configs that pass."""

from typing import Any

from slipway.planning.rules.schedules import steps_ascend, steps_fit_the_range
from tests.unit.planning.rule_findings import findings, only


def stepped(*steps: tuple[float, int], **over: Any) -> dict[str, Any]:
    listed = [{"from_times_target": times, "add_instances": count} for times, count in steps]
    scaling = {
        "min_instance_count": 2,
        "max_instance_count": 6,
        "target_invocations_per_instance_per_minute": 600,
        "steps": listed,
    }
    return {"autoscaling": scaling | over}


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
