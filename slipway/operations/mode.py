"""The mode of a live endpoint, compared with a plan before a deploy."""

from collections.abc import Mapping
from typing import Any

from slipway.access import Access
from slipway.codes.code import Code
from slipway.errors import Kind, Problem
from slipway.operations.live import (
    describe_endpoint,
    described_component,
    described_config,
    hosts_components,
)
from slipway.planning.plan import DeploymentPlan

# By the name in `endpoint.mode`.
_WORDS = {
    "realtime": "real-time",
    "async": "asynchronous",
    "scale_to_zero": "an endpoint of inference components",
}


def compare_mode(plan: DeploymentPlan, access: Access) -> tuple[list[str], list[Problem]]:
    """Compares the live endpoint's mode with a plan: AWS documents no update between the modes.

    Returns:
        A line where the mode cannot be told, and the problem of another mode.

    Raises:
        ClientError: the account could not be examined.
    """
    sagemaker = access.client("sagemaker")
    if (moved := _moved(sagemaker, plan)) is not None:
        return [], [moved]
    described = describe_endpoint(sagemaker, plan.endpoint_name)
    if described is None:
        if plan.host is None:
            return [], []
        return [f"{plan.endpoint_name} is not there yet: `cdk deploy` makes it first"], []
    live = _live_mode(sagemaker, described)
    if live is None:
        config = described["EndpointConfigName"]
        return [f"not compared: the mode of {plan.endpoint_name}, as {config} was deleted"], []
    if live == plan.config.endpoint.mode:
        return [], []
    owner, mode = plan.host or plan.config.name, plan.config.endpoint.mode
    return [], [
        Problem(
            Code.MODE_CHANGE,
            Kind.STATE,
            f"{plan.endpoint_name} is {_WORDS[live]} and would become {_WORDS[mode]}: AWS "
            "documents no such update",
            f"Run `cdk destroy {owner} -c models={owner} -c env={plan.environment.name}` when "
            "nobody uses the endpoint, then deploy.",
        )
    ]


def _moved(sagemaker: Any, plan: DeploymentPlan) -> Problem | None:
    """Returns the problem of copies that run on another endpoint than the planned one."""
    if plan.component is None:
        return None
    live = described_component(sagemaker, plan.component.name)
    if live is None or live["EndpointName"] == plan.endpoint_name:
        return None
    name, environment = plan.config.name, plan.environment.name
    return Problem(
        Code.MODE_CHANGE,
        Kind.STATE,
        f"the copies of {name} run on the endpoint {live['EndpointName']}, and would move to "
        f"{plan.endpoint_name}: SageMaker has no operation that moves them",
        f"Run `cdk destroy {name} -c models={name} -c env={environment}` when "
        "nobody uses the model, then deploy.",
    )


def _live_mode(sagemaker: Any, described: Mapping[str, Any]) -> str | None:
    """Returns the mode of an endpoint, as `endpoint.mode`; None if its configuration was deleted.

    Args:
        sagemaker: boto3's client.
        described: DescribeEndpoint's answer.
    """
    if "AsyncInferenceConfig" in described:
        return "async"
    config = described_config(sagemaker, described["EndpointConfigName"])
    if config is None:
        return None
    return "scale_to_zero" if hosts_components(config) else "realtime"
