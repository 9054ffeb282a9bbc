"""Rollouts: what is refused, word for word, what is advised, and what a plan tells of them."""

from typing import Any

import pytest

from slipway.config.sections.alarms import ALARM_KINDS
from slipway.config.sections.rollout import Rollout
from slipway.planning.advice import Subject, rollout_hardly_watched, rollout_step_below_instance
from slipway.planning.families import deployment_of
from slipway.planning.plan import ArtifactPlan, PlanWarning
from slipway.planning.rollout import describe_rollout, new_fleet_alarms
from slipway.planning.rules import rollouts
from tests.support.projects import LOCAL, model_config
from tests.unit.planning.rule_findings import findings, on, only, refused_fields, scaling

CANARY = {"strategy": "canary", "step_percent": 25}
LINEAR = {"strategy": "linear", "step_percent": 25}
ROLLING = {"strategy": "rolling", "step_percent": 25}
COPIES = {
    "mode": "scale_to_zero",
    "scale_to_zero": {"max_copies": 2, "target_concurrent_requests_per_copy": 5},
}


def variants(*names: str, **more: Any) -> dict[str, Any]:
    return {"variants": [{"name": name, "weight": 1, **more} for name in names]}


class TestStrategy:
    rule = staticmethod(rollouts.rollout_has_guardrails)

    def test_rollout_has_guardrails(self):
        assert only(findings(self.rule, endpoint=on("ml.inf1.xlarge"), rollout=CANARY)) == (
            "rollout.strategy",
            "SageMaker moves inf1 fleets all at once; there is no `canary` there",
            "Remove `rollout`.",
        )
        assert findings(self.rule, rollout=CANARY) == []
        assert only(findings(self.rule, endpoint=variants("a", "b"), rollout=ROLLING)) == (
            "rollout.strategy",
            "SageMaker moves several variants all at once; there is no `rolling` there",
            "Remove `variants`, or set `strategy: linear`.",
        )
        assert findings(self.rule, rollout=ROLLING) == []
        for rollout in (CANARY, LINEAR):
            assert findings(self.rule, endpoint=variants("a", "b"), rollout=rollout) == []

    @pytest.mark.parametrize("strategy", ["canary", "linear"])
    def test_a_component_has_no_second_fleet(self, strategy):
        rule = rollouts.rollout_fits_mode
        rollout = {"strategy": strategy, "step_percent": 25}
        component = {"copy_memory_mib": 8192, "max_copies": 2}
        endpoint = {"mode": "scale_to_zero", "scale_to_zero": component}
        assert only(findings(rule, rollout=rollout, endpoint=endpoint)) == (
            "rollout.strategy",
            f"an inference component is updated copy by copy; there is no `{strategy}` with "
            "`mode: scale_to_zero`",
            "Set `strategy: rolling`, or remove `rollout`.",
        )
        for guarded, field in (
            ({"wait_seconds": 60}, "rollout"),
            ({"strategy": "all_at_once"}, "rollout.strategy"),
        ):
            assert only(findings(rule, rollout=guarded, endpoint=endpoint)) == (
                field,
                "an inference component is updated copy by copy; `all_at_once` has no guards "
                "with `mode: scale_to_zero`",
                "Set `strategy: rolling`, or remove `rollout`.",
            )
        assert findings(rule, rollout=rollout) == []
        assert findings(rule, rollout=rollout | {"strategy": "rolling"}, endpoint=endpoint) == []


def test_rollout_has_capacity():
    rule = rollouts.rollout_has_capacity
    assert only(findings(rule, endpoint={"instance_count": 1}, rollout=CANARY)) == (
        "rollout.strategy",
        "`canary` needs 2 instances at least; there is 1",
        "Use 2 instances or more, or set `strategy: all_at_once`.",
    )
    assert findings(rule, rollout=CANARY) == []
    assert findings(rule, endpoint={"instance_count": 1}) == []
    endpoint = variants("a", "b")
    endpoint["variants"][1]["instance_count"] = 1
    assert only(findings(rule, endpoint=endpoint, rollout=LINEAR)) == (
        "rollout.strategy",
        "`linear` needs 2 instances at least; there is 1 in `b`",
        "Use 2 instances or more, or set `strategy: all_at_once`.",
    )
    assert findings(rule, endpoint=variants("a", "b"), rollout=LINEAR) == []
    assert refused_fields(rule, autoscaling=scaling(1, 4), rollout=ROLLING) == [
        "autoscaling.min_instance_count"
    ]
    assert findings(rule, autoscaling=scaling(2, 4), rollout=ROLLING) == []
    assert findings(rule, autoscaling=scaling(1, 4)) == []


class TestSettings:
    def test_the_size_of_a_step_is_said_and_large_enough(self):
        rule = rollouts.rollout_has_steps
        assert findings(rule, rollout={"strategy": "rolling"}) == [
            ("rollout.strategy", "`rolling` needs the size of a step", "Add `step_percent`.")
        ]
        assert only(findings(rule, rollout={"strategy": "linear", "step_percent": 5})) == (
            "rollout.step_percent",
            "a linear step of 5 % is too small: SageMaker takes 10 to 50",
            "Use 10 or more.",
        )
        assert findings(rule, rollout={"strategy": "rolling", "step_percent": 5}) == []
        assert findings(rule) == []

    def test_settings_have_effect(self):
        rule = rollouts.settings_have_effect
        assert only(findings(rule, rollout={"step_percent": 25})) == (
            "rollout.step_percent",
            "nothing reads `step_percent` with `strategy: all_at_once`",
            "Remove it, or choose a strategy with steps.",
        )
        assert findings(rule, rollout=CANARY) == []
        assert only(findings(rule, rollout={})) == (
            "rollout",
            "`rollout` has no field and would have no effect",
            "Remove it, or set `strategy: all_at_once`, which watches `server_error_rate`.",
        )
        assert findings(rule, rollout={"strategy": "all_at_once"}) == []
        kept = {"termination_wait_seconds": 60}
        assert refused_fields(rule, rollout=ROLLING | kept) == ["rollout.termination_wait_seconds"]
        assert findings(rule, rollout=LINEAR | kept) == []
        guards = {"rollback_alarms": ["server_error_rate"], "wait_seconds": 600}
        assert findings(rule, endpoint=on("ml.inf1.xlarge"), rollout=guards) == [
            (
                f"rollout.{name}",
                f"SageMaker updates ml.inf1.xlarge without guards: `{name}` would have no effect",
                "Remove it.",
            )
            for name in ("rollback_alarms", "wait_seconds")
        ]
        at_once = {"strategy": "all_at_once"}
        refused = refused_fields(rule, endpoint=on("ml.inf1.xlarge"), rollout=at_once)
        assert refused == ["rollout.strategy"]
        assert findings(rule, rollout=guards) == []
        assert findings(rule, endpoint=on("ml.inf1.xlarge")) == []

    def test_it_ends_before_it_is_stopped(self):
        rule = rollouts.rollout_ends_in_time
        linear = LINEAR | {"wait_seconds": 300, "termination_wait_seconds": 120}
        assert only(findings(rule, rollout=linear | {"max_execution_seconds": 1320})) == (
            "rollout.max_execution_seconds",
            "the update takes longer than 1320 s: it waits 4 x 300 s, and 120 s at the end",
            "Use more than 1320 s, or wait less.",
        )
        assert findings(rule, rollout=linear | {"max_execution_seconds": 1321}) == []
        assert findings(rule, rollout=linear) == []
        # The canary is watched, and so is the whole fleet after it.
        canary = CANARY | {"wait_seconds": 300, "max_execution_seconds": 600}
        assert len(findings(rule, rollout=canary)) == 1
        assert findings(rule, rollout=canary | {"max_execution_seconds": 601}) == []
        at_once = {"wait_seconds": 300, "max_execution_seconds": 600}
        assert findings(rule, rollout=at_once) == []


class TestAlarms:
    def test_a_step_is_watched_for_the_minutes_of_an_alarm(self):
        rule = rollouts.alarms_see_each_step
        alarms = {"evaluation_periods_minutes": 5}
        assert only(findings(rule, rollout=CANARY | {"wait_seconds": 299}, alarms=alarms)) == (
            "rollout.wait_seconds",
            "the alarms cannot see a fault: they need 5 minutes in a row, and each step is "
            "watched for 299 s",
            "Set `rollout.wait_seconds: 360`, or fewer `alarms.evaluation_periods_minutes`.",
        )
        assert findings(rule, rollout=CANARY | {"wait_seconds": 300}, alarms=alarms) == []
        # Nobody watches: nobody is misled.
        unwatched = {"wait_seconds": 0, "rollback_alarms": []}
        assert findings(rule, rollout=unwatched, alarms=alarms) == []
        assert findings(rule, alarms={"evaluation_periods_minutes": 10}) == []

    def test_rollback_alarms_exist(self):
        rule = rollouts.rollback_alarms_exist
        assert only(findings(rule, rollout={"rollback_alarms": ["disk_utilization"]})) == (
            "rollout.rollback_alarms[0]",
            "there is no alarm `disk_utilization` to undo an update",
            "Add `alarms.disk_utilization_percent`, or remove it here.",
        )
        assert findings(rule, rollout={"rollback_alarms": []}) == []
        assert findings(rule, rollout=CANARY) == []
        assert only(findings(rule, rollout=CANARY | {"rollback_alarms": []})) == (
            "rollout.rollback_alarms",
            "no alarm would undo a `canary` update",
            "Name an alarm at least, for example `server_error_rate`.",
        )
        watched = CANARY | {"rollback_alarms": ["model_latency_p99", "client_error_rate"]}
        assert refused_fields(rule, rollout=watched) == ["rollout.rollback_alarms[1]"]
        assert findings(rule, rollout=watched, alarms={"client_error_rate_percent": 5}) == []

    def test_an_update_watches_ten_alarms(self):
        rule = rollouts.rollback_alarms_are_few
        several = variants(*(f"v{number}" for number in range(6)))
        two = {"rollback_alarms": ["server_error_rate", "model_latency_p99"]}
        assert only(findings(rule, endpoint=several, rollout=two)) == (
            "rollout.rollback_alarms",
            "2 alarms of 6 variants are 12; an update watches 10 at most",
            "Name 1 at most.",
        )
        assert findings(rule, rollout=two) == []
        # Nobody asked for guards: there is no deployment config to hold them.
        assert findings(rule, endpoint=variants(*(f"v{n}" for n in range(10)))) == []
        twice = {"rollback_alarms": ["server_error_rate"] * 2}
        assert findings(rule, rollout=twice) == [
            ("rollout.rollback_alarms[1]", "`server_error_rate` is named twice", "Remove it here.")
        ]


def advised(advice: Any, **sections: Any) -> list[PlanWarning]:
    artifact = ArtifactPlan("bucket", "0" * 64, 1, 1, "cpu", published=True)
    return list(advice(Subject(deployment_of(model_config(**sections), LOCAL), artifact)))


def test_one_minute_more_than_the_alarms_need_is_advised():
    alarms = {"evaluation_periods_minutes": 3}
    assert advised(rollout_hardly_watched, rollout={"wait_seconds": 239}, alarms=alarms) == [
        PlanWarning(
            "rollout-hardly-watched",
            "Each step of the rollout is watched for 239 s, and an alarm needs 3 whole minutes. A "
            "fault at the last step may be seen too late. Set `wait_seconds: 240`.",
        )
    ]
    for rollout in ({"wait_seconds": 240}, {"wait_seconds": 0, "rollback_alarms": []}, {}):
        assert advised(rollout_hardly_watched, rollout=rollout, alarms=alarms) == []


def test_a_step_smaller_than_an_instance_is_pointed_out():
    assert advised(rollout_step_below_instance, rollout=CANARY) == [
        PlanWarning(
            "rollout-step-below-instance",
            "A step of 25 % of 2 instances is less than one instance. AWS does not document how "
            "SageMaker rounds it, so the real share may be larger.",
        )
    ]
    four = {"instance_count": 4}
    assert advised(rollout_step_below_instance, rollout=CANARY, endpoint=four) == []
    scaled = advised(
        rollout_step_below_instance, rollout=CANARY, endpoint=four, autoscaling=scaling(3, 6)
    )
    assert [warning.message.split(" is ")[0] for warning in scaled] == [
        "A step of 25 % of 3 instances"
    ]
    assert advised(rollout_step_below_instance) == []
    assert advised(rollout_step_below_instance, rollout=ROLLING, endpoint=COPIES) == []


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


@pytest.mark.parametrize(
    ("step", "sections", "message"),
    [
        (2, {"endpoint": {"instance_count": 4}}, None),
        (3, {"endpoint": {"instance_count": 4}}, "a step of 3 is not 5 to 50 % of 4 instances"),
        (1, {"endpoint": {"instance_count": 20}}, None),
        (1, {"endpoint": {"instance_count": 21}}, "a step of 1 is not 5 to 50 % of 21 instances"),
        (2, {"autoscaling": scaling(3, 6)}, "a step of 2 is not 5 to 50 % of 3 to 6 instances"),
        (1, {"autoscaling": scaling(3, 6)}, None),
        (1, {"endpoint": COPIES}, None),
        (2, {"endpoint": COPIES}, "a step of 2 is not 5 to 50 % of 1 to 2 copies"),
    ],
)
def test_a_step_in_counts_suits_every_size_of_the_fleet(step, sections, message):
    rollout = {"strategy": "rolling", "step_count": step}
    found = findings(rollouts.counts_suit_the_fleet, rollout=rollout, **sections)
    assert [text for _, text, _ in found] == ([] if message is None else [message])


def test_the_way_back_has_batches_with_rolling_alone():
    rollout = {"strategy": "linear", "step_percent": 25, "rollback_step_count": 1}
    assert only(findings(rollouts.settings_have_effect, rollout=rollout)) == (
        "rollout.rollback_step_count",
        "nothing reads `rollback_step_count` with `strategy: linear`",
        "Remove it, or choose `rolling`.",
    )


def test_only_metrics_of_requests_are_published_for_each_fleet():
    named = {"rollback_alarms": list(ALARM_KINDS)}
    assert new_fleet_alarms(model_config(rollout=named)) == (
        "server_error_rate",
        "model_latency_p99",
        "overhead_latency_p99",
        "client_error_rate",
    )
    for mode in ("async", "scale_to_zero"):
        assert new_fleet_alarms(model_config(rollout=named, endpoint={"mode": mode})) == ()


@pytest.mark.parametrize(
    ("rollout", "lines"),
    [
        (
            {"rollback_alarms": []},
            (
                "all at once, watched for 300 s",
                "takes at least 300 s and the start of the new instances; CloudFormation waits 970 "
                "minutes",
                "undone by no alarm",
            ),
        ),
        (
            CANARY | {"termination_wait_seconds": 60, "max_execution_seconds": 900},
            (
                "canary: 25 %, 100 % of the requests, each watched for 300 s; old fleet kept 60 s",
                "takes at least 660 s and the start of the new instances; undone after 900 s",
                "undone by server_error_rate of the new fleet",
            ),
        ),
        (
            ROLLING | {"rollback_alarms": ["memory_utilization", "server_error_rate"]},
            (
                "rolling: 25 %, 50 %, 75 %, 100 % of the requests, each watched for 300 s; each "
                "batch of the old fleet ends after its step",
                "takes at least 1200 s and the start of the new instances; CloudFormation waits "
                "970 minutes",
                "undone by server_error_rate of the new fleet, memory_utilization of both fleets",
            ),
        ),
    ],
)
def test_a_rollout_in_words(rollout: dict[str, Any], lines: tuple[str, ...]):
    assert describe_rollout(model_config(rollout=rollout)) == lines


def test_a_rollout_of_copies_in_words():
    endpoint = {
        "mode": "scale_to_zero",
        "scale_to_zero": {"max_copies": 2, "target_concurrent_requests_per_copy": 5},
    }
    assert describe_rollout(model_config(rollout=ROLLING, endpoint=endpoint)) == (
        "rolling: 25 %, 50 %, 75 %, 100 % of the copies, each watched for 300 s; a batch has one "
        "copy at least",
        "takes at least 1200 s and the start of the new copies",
        "undone by server_error_rate of all copies",
    )
