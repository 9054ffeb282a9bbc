"""Rollouts: the steps of a strategy, the alarms that watch them, and what a plan tells."""

import pytest

from slipway.config.sections.alarms import ALARM_KINDS
from slipway.config.sections.rollout import Rollout
from slipway.planning.rollout import describe_rollout, new_fleet_alarms
from tests.support.projects import model_config

CANARY = {"strategy": "canary", "step_percent": 25}
ROLLING = {"strategy": "rolling", "step_percent": 25}
COPIES = {
    "mode": "scale_to_zero",
    "scale_to_zero": {"max_copies": 2, "target_concurrent_requests_per_copy": 5},
}


@pytest.mark.parametrize(
    ("strategy", "step", "shares", "instances"),
    [
        ("all_at_once", {}, (100,), 7),
        ("canary", {"step_percent": 10}, (10, 100), 1),
        ("canary", {"step_percent": 50}, (50, 100), 4),
        ("canary", {"step_count": 2}, (29, 100), 2),
        ("linear", {"step_percent": 50}, (50, 100), 4),
        ("linear", {"step_percent": 30}, (30, 60, 90, 100), 3),
        ("linear", {"step_count": 3}, (43, 86, 100), 3),
        ("rolling", {"step_percent": 5}, (*range(5, 100, 5), 100), 1),
        ("rolling", {"step_count": 1}, (14, 29, 43, 57, 71, 86, 100), 1),
    ],
)
def test_the_steps_of_a_strategy_in_a_fleet_of_seven(strategy, step, shares, instances):
    rollout = Rollout.model_validate({"strategy": strategy, **step})
    assert rollout.shares_percent(7) == shares
    assert rollout.step_of(7) == instances


def test_only_metrics_of_requests_are_published_for_each_fleet():
    def published(mode: str) -> list[str]:
        configs = {
            name: model_config(rollout={"rollback_alarms": [name]}, endpoint={"mode": mode})
            for name in ALARM_KINDS
        }
        return [name for name, config in configs.items() if new_fleet_alarms(config)]

    assert published("realtime") == [
        "server_error_rate",
        "model_latency_p99",
        "overhead_latency_p99",
        "client_error_rate",
    ]
    assert not published("async")
    assert not published("scale_to_zero")


@pytest.mark.parametrize(
    ("rollout", "endpoint", "lines"),
    [
        (
            {"rollback_alarms": []},
            {},
            (
                "all at once, watched for 300 s",
                "takes at least 300 s and the start of the new instances; CloudFormation waits 970 "
                "minutes",
                "undone by no alarm",
            ),
        ),
        (
            CANARY | {"termination_wait_seconds": 60, "max_execution_seconds": 900},
            {},
            (
                "canary: 25 %, 100 % of the requests, each watched for 300 s; old fleet kept 60 s",
                "takes at least 660 s and the start of the new instances; undone after 900 s",
                "undone by server_error_rate of the new fleet",
            ),
        ),
        (
            ROLLING | {"rollback_alarms": ["memory_utilization", "server_error_rate"]},
            {},
            (
                "rolling: 25 %, 50 %, 75 %, 100 % of the requests, each watched for 300 s; each "
                "batch of the old fleet ends after its step",
                "takes at least 1200 s and the start of the new instances; CloudFormation waits "
                "970 minutes",
                "undone by server_error_rate of the new fleet, memory_utilization of both fleets",
            ),
        ),
        (
            ROLLING,
            COPIES,
            (
                "rolling: 25 %, 50 %, 75 %, 100 % of the copies, each watched for 300 s; a batch "
                "has one copy at least",
                "takes at least 1200 s and the start of the new copies",
                "undone by server_error_rate of all copies",
            ),
        ),
    ],
)
def test_a_rollout_in_words(rollout, endpoint, lines):
    assert describe_rollout(model_config(rollout=rollout, endpoint=endpoint)) == lines
