"""A run with a goal is the same run, and ends where the goal is missed."""

import math
from dataclasses import replace
from typing import Any

from slipway.simulation.fleet_of import SimulatedFleet
from slipway.simulation.queues import Bounds, ServiceTimes
from slipway.simulation.run import Goal, Simulation, hold, simulate
from slipway.simulation.traffic import profile


def test_a_goal_that_is_just_met_changes_nothing_and_one_just_missed_has_no_result():
    subject = SimulatedFleet(None, 3, 1, Bounds(queue_length=4), None, None)
    service = ServiceTimes(0.1, 1.0, 1)
    traffic = profile("burst:base=5,peak=40,every=900,length=60,hours=0.5")
    timing: Any = {"start_seconds": 300.0, "begin": 0.0, "points": 5000}
    whole = simulate(subject, service, traffic, **timing)
    assert whole.failed > 0
    assert whole.p99_seconds is not None
    met = Goal(whole.p99_seconds, whole.failed, whole.instance_hours + 1)

    def run(goal: Goal) -> Simulation | None:
        return hold(subject, service, traffic, goal, **timing)

    assert run(met) == whole
    assert run(Goal(math.inf, math.inf, math.inf)) == whole
    assert run(replace(met, instance_hours=whole.instance_hours)) is None
    assert run(replace(met, failed=whole.failed * 0.999)) is None
    assert run(replace(met, p99_seconds=whole.p99_seconds * 0.999)) is None
