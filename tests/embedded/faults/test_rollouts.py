"""Deploys that meet each other, are interrupted, or need more instances than a quota allows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import aws_cdk as cdk
import pytest
from botocore.exceptions import ClientError

from slipway.operations.preflight.findings import parted
from slipway.operations.preflight.quotas import compare_quotas
from slipway.operations.status import find_status
from slipway.stacks.endpoint_stack import EndpointStack
from tests.support.rollouts import (
    ENDPOINT,
    HURRIED,
    ROLLOUT_MODEL,
    answer_of,
    described,
    planned_rollout,
)
from tests.support.slipway_stack import SlipwayStack, slipway_stack
from tests.support.waiting import eventually
from tests.synth.assemblies import new_app

QUOTA = "ml.g4dn.xlarge for endpoint usage"


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlipwayStack]:
    """A stack that serves.

    Each test leaves it so, with a version of the model that no other test deploys first.
    """
    with slipway_stack(
        tmp_path_factory.mktemp("deployed"), model=ROLLOUT_MODEL, time_scale=HURRIED
    ) as stack:
        assert stack.create("ok") == "CREATE_COMPLETE"
        yield stack


@pytest.mark.size("all")
def test_a_deploy_interrupted_between_two_steps_is_completed_by_the_next(deployed):
    stack = deployed
    old = described(stack)["EndpointConfigName"]
    stack.stacks.start_update(stack.name, stack.template("slow"))
    eventually(lambda: described(stack).get("PendingDeploymentSummary"))
    stack.stacks.api.cancel_update_stack(StackName=stack.name)
    assert stack.stacks.settled(stack.name) == "UPDATE_ROLLBACK_COMPLETE"
    assert described(stack)["EndpointConfigName"] == old
    assert stack.update("slow") == "UPDATE_COMPLETE"
    after = described(stack)
    assert (after["EndpointStatus"], after["EndpointConfigName"] != old) == ("InService", True)
    assert find_status(stack.name, stack.access, plan=None, log_line_count=0).troubles() == []


@pytest.mark.size("all")
def test_another_rollout_alone_starts_another_fleet_of_the_same_model(deployed, tmp_path):
    stack = deployed
    old = described(stack)
    app = new_app(tmp_path)
    plan = planned_rollout("linear")
    env = cdk.Environment(account=plan.environment.account, region=plan.environment.region)
    EndpointStack(app, "changed", plan=plan, env=env)
    file = Path(app.synth().directory, "changed.template.json")
    changed = stack.template("ok", file)
    assert stack.stacks.update(stack.name, changed) == "UPDATE_COMPLETE"
    new = described(stack)
    assert new["CreationTime"] == old["CreationTime"]
    assert new["EndpointConfigName"] != old["EndpointConfigName"]
    routing = new["LastDeploymentConfig"]["BlueGreenUpdatePolicy"]["TrafficRoutingConfiguration"]
    assert routing["Type"] == "LINEAR"
    assert answer_of(stack) == "x"
    assert stack.update("ok") == "UPDATE_COMPLETE"


@pytest.mark.size("all")
def test_a_second_deploy_is_refused_until_the_first_is_over(deployed):
    stack = deployed
    stack.stacks.start_update(stack.name, stack.template("stubborn"))
    new = eventually(lambda: described(stack).get("PendingDeploymentSummary"))
    with pytest.raises(ClientError, match="is in UPDATE_IN_PROGRESS state and can not be updated"):
        stack.stacks.start_update(stack.name, stack.template("ok"))
    assert find_status(stack.name, stack.access, plan=None, log_line_count=0).in_progress
    assert stack.stacks.settled(stack.name) == "UPDATE_COMPLETE"
    assert described(stack)["EndpointConfigName"] == new["EndpointConfigName"]
    assert stack.update("ok") == "UPDATE_COMPLETE"


@pytest.fixture
def quota(deployed: SlipwayStack) -> Iterator[tuple[str, Callable[[float], None]]]:
    """The code of the instance type's quota, and what sets it; it gets its default back."""
    quotas, sagemaker = deployed.stacks.client("service-quotas"), {"ServiceCode": "sagemaker"}
    pages = quotas.get_paginator("list_aws_default_service_quotas").paginate(**sagemaker)
    (found,) = (quota for page in pages for quota in page["Quotas"] if quota["QuotaName"] == QUOTA)
    code = found["QuotaCode"]

    def allow(count: float) -> None:
        quotas.request_service_quota_increase(**sagemaker, QuotaCode=code, DesiredValue=count)

    yield code, allow
    allow(found["Value"])


@pytest.mark.size("all")
def test_a_second_fleet_over_the_quota_is_foreseen_and_refused(deployed, quota):
    stack, (code, allow) = deployed, quota
    # An old fleet counts until its last process has ended.
    eventually(lambda: len(stack.running()) == 1)
    old = described(stack)["EndpointConfigName"]
    allow(3)
    _, (problem,) = parted(compare_quotas(planned_rollout("canary"), stack.access))
    assert problem.message == (
        f"the quota '{QUOTA}' is 3 in us-east-1, and the deployment needs 4: 2 run, and 2 start "
        "beside them"
    )
    assert problem.remedy == (
        "Ask for more with `aws service-quotas request-service-quota-increase --service-code "
        f"sagemaker --quota-code {code} --desired-value 4 --region us-east-1`, or set "
        "`rollout.strategy: rolling`."
    )
    assert stack.update("lagging") == "UPDATE_ROLLBACK_COMPLETE"
    assert (
        f"The account-level service limit '{QUOTA}' is 3 Instances, with current utilization of 2 "
        "Instances and a request delta of 2 Instances."
    ) in stack.stacks.reason(stack.name, ENDPOINT, "UPDATE_FAILED")
    assert described(stack)["EndpointConfigName"] == old
    assert answer_of(stack) == "x"

    # One batch beside the old fleet has room.
    assert parted(compare_quotas(planned_rollout("rolling"), stack.access)) == (
        [f"quota '{QUOTA}' of 3 for 3"],
        [],
    )
    # Here the remedy is granted at once.
    allow(4)
    assert parted(compare_quotas(planned_rollout("canary"), stack.access)) == (
        [f"quota '{QUOTA}' of 4 for 4"],
        [],
    )
    assert stack.update("lagging") == "UPDATE_COMPLETE"
