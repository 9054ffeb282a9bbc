"""A model whose deployment shifts traffic in steps, as the tests of rollouts plan and ask it."""

from __future__ import annotations

from typing import Any

from botocore.exceptions import ClientError

from slipway.planning.plan import DeploymentPlan
from tests.support.plans import plan_for
from tests.support.projects import model_config
from tests.support.slipway_stack import SlipwayStack

ROLLOUT_MODEL = "rollout-canary"
ENDPOINT = "HostingEndpointD164256E"
# The 240 s of a step become 1.2.
HURRIED = 0.005


def planned_rollout(strategy: str) -> DeploymentPlan:
    config = model_config(ROLLOUT_MODEL, rollout={"strategy": strategy, "step_percent": 50})
    return plan_for(config)


def answer_of(stack: SlipwayStack) -> str:
    try:
        return stack.invoke()
    except ClientError as error:
        return str(error.response["Error"]["Code"])


def described(stack: SlipwayStack) -> dict[str, Any]:
    sagemaker = stack.stacks.client("sagemaker")
    found: dict[str, Any] = sagemaker.describe_endpoint(EndpointName=stack.name)
    return found
