"""Containers that do not start, that are replaced by broken ones, and that die."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from botocore.exceptions import ClientError

from slipway.operations.leftovers import find_leftovers
from slipway.operations.status import find_status
from slipway.planning.plan import DeploymentPlan
from tests.support.clients import Clients
from tests.support.clocks import MovableClock
from tests.support.plans import plan_for
from tests.support.projects import LOCAL, model_config
from tests.support.rollouts import answer_of
from tests.support.slipway_stack import MODEL, NAME, SCALING, SlipwayStack, slipway_stack
from tests.support.waiting import eventually

# 600 s, the template's timeouts, become 3 s.
HURRIED = 0.005


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[SlipwayStack]:
    with slipway_stack(tmp_path, time_scale=HURRIED) as stack:
        yield stack


def plan_of(digest: str) -> DeploymentPlan:
    config = model_config(MODEL, autoscaling=SCALING)
    plan = plan_for(config)
    return replace(plan, artifact=replace(plan.artifact, digest=digest))


@pytest.mark.size("all")
def test_a_container_that_never_answers_ping(stack):
    begun = time.monotonic()
    assert stack.create("unready") == "ROLLBACK_COMPLETE"
    # The configured 600 s, scaled, and what the stack needs besides.
    assert 600 * HURRIED < time.monotonic() - begun < 600 * HURRIED + 10
    reason = stack.stacks.reason(NAME, "HostingEndpointD164256E", "CREATE_FAILED")
    assert "did not pass the ping health check" in reason
    assert "The container did not answer /ping with 200 within 600 seconds" in reason
    assert "its last lines: stand-in unready pid" in reason

    assert stack.running() == []
    # The stack, which tells the reason, and the end of the log.
    left = find_leftovers(MODEL, LOCAL, stack.access)
    assert [item.kind for item in left] == ["log group", "stack"]
    status = find_status(NAME, stack.access, plan=None, log_line_count=5)
    assert status.endpoint is None
    first, second, third = status.troubles()
    assert first == "there is no endpoint: nothing is served"
    assert second == ("the last deployment failed and was undone: the stack is ROLLBACK_COMPLETE")
    assert third == f"HostingEndpointD164256E: {reason}"
    assert stack.delete() == "DELETE_COMPLETE"


@pytest.mark.size("all")
def test_a_failed_create_that_is_kept_shows_its_log(stack):
    assert stack.create("dead", DisableRollback=True) == "CREATE_FAILED"
    status = find_status(NAME, stack.access, plan=None, log_line_count=5)
    assert status.endpoint.status == "Failed"
    first, second, reason, way_out = status.troubles()
    assert first == "the endpoint is Failed"
    assert second == "the last deployment failed: the stack is CREATE_FAILED"
    assert "The primary container for production variant" in reason
    assert way_out.endswith(f"`aws cloudformation delete-stack --stack-name {NAME}` [SW725]")
    assert "cannot load the model: no such layer" in [line.text for line in status.log_lines]
    assert stack.running() == []
    assert stack.delete() == "DELETE_COMPLETE"
    assert find_leftovers(MODEL, LOCAL, stack.access) == []


def test_an_update_to_a_broken_container_loses_no_request(stack):
    assert stack.create("ok") == "CREATE_COMPLETE"
    healthy = find_status(NAME, stack.access, plan=None, log_line_count=0)
    assert healthy.troubles() == []
    before = len(stack.running())
    for broken in ("dead", "unready"):
        with Clients(lambda: answer_of(stack), pause_seconds=0.01) as client:
            assert stack.update(broken) == "UPDATE_ROLLBACK_COMPLETE"
        assert set(client.answers) == {"x"}
        status = find_status(NAME, stack.access, plan=None, log_line_count=5)
        assert status.endpoint.served.artifact == stack.publish("ok")
        first, second = status.troubles()
        assert first == (
            "the last deployment failed and was undone: the stack is UPDATE_ROLLBACK_COMPLETE"
        )
        assert "did not pass the ping health check" in second
        # The container that failed is gone, its log is not.
        assert f"stand-in {broken}" in [
            line.text.partition(" pid ")[0] for line in status.log_lines
        ]
        assert len(stack.running()) == before
    # With the change taken back in the files, there is nothing left to put right.
    reverted = find_status(NAME, stack.access, plan=plan_of(stack.publish("ok")), log_line_count=0)
    assert reverted.troubles() == []
    assert reverted.notes() == [
        "a deployment failed and was undone; what is served is what the files say: the stack is "
        "UPDATE_ROLLBACK_COMPLETE"
    ]
    wanted = find_status(NAME, stack.access, plan=plan_of(stack.publish("dead")), log_line_count=0)
    assert wanted.notes() == []
    assert len(wanted.troubles()) == 2
    assert stack.update("slow") == "UPDATE_COMPLETE"
    assert find_status(NAME, stack.access, plan=None, log_line_count=0).troubles() == []


def test_a_container_that_dies_raises_the_alarm(tmp_path):
    # A minute begins now, so that all errors are of the same one.
    clock = MovableClock()
    clock.move(60 - time.time() % 60)
    with slipway_stack(tmp_path, time_scale=HURRIED, clock=clock) as stack:
        template = stack.template("ok", alarm_periods=1)
        assert stack.stacks.create(NAME, template) == "CREATE_COMPLETE"
        pids: list[str | None] = [stack.invoke("pid")]

        def is_restarted() -> bool:
            pids.append(stack.invoke_or_none("pid"))
            return pids[-1] not in (pids[0], None)

        with Clients(lambda: answer_of(stack), pause_seconds=0.01) as client:
            with pytest.raises(ClientError):
                stack.invoke("exit")
            eventually(is_restarted)
        assert set(client.answers) <= {"x", "InternalFailure", "ServiceUnavailable"}
        # A fast machine answers so many requests meanwhile that one error is too small a share.
        sent = 1 + len(pids) + client.answers.total()
        errors = 1 + pids.count(None) + client.answers.total() - client.answers["x"]
        while errors < 0.02 * sent:
            assert stack.invoke_or_none("exit") is None
            sent, errors = sent + 1, errors + 1
        status = find_status(NAME, stack.access, plan=None, log_line_count=20)
        assert "The container exited with status 3; it is restarted." in [
            line.text for line in status.log_lines
        ]

        # The minute in which it died is over.
        clock.move(60)
        raised = eventually(lambda: alarm_troubles(stack), seconds=60)
        assert len(raised) == 1
        assert raised[0].startswith(f"alarm {NAME}-AlarmsServerErrorRate7C02E9F9-")
        assert ": Threshold Crossed: 1 datapoint [" in raised[0]
        assert raised[0].endswith("was greater than the threshold (1.0).")
        # Minutes later nobody asks, and nothing fails.
        clock.move(240)
        eventually(lambda: not alarm_troubles(stack), seconds=60)


def alarm_troubles(stack: SlipwayStack) -> list[str]:
    status = find_status(NAME, stack.access, plan=None, log_line_count=0)
    return [trouble for trouble in status.troubles() if trouble.startswith("alarm ")]
