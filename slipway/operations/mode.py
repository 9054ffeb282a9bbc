"""The mode of a live endpoint, compared with a plan before a deploy."""

from collections.abc import Mapping
from typing import Any

from slipway.access import Access
from slipway.codes.code import Code
from slipway.errors import Kind, Problem
from slipway.operations.live import describe_endpoint, described_config, hosts_components
from slipway.planning.plan import DeploymentPlan

_REAL_TIME = "real-time"
_ASYNCHRONOUS = "asynchronous"
_COMPONENTS = "an endpoint of inference components"


def compare_mode(plan: DeploymentPlan, access: Access) -> tuple[list[str], list[Problem]]:
    """Compares the live endpoint's mode with a plan: AWS documents no update between the modes.

    Args:
        plan: of the model.
        access: clients of the account.

    Returns:
        A line where the mode cannot be told, and the problem of another mode.

    Raises:
        ClientError: the account could not be examined.
    """
    sagemaker = access.client("sagemaker")
    described = describe_endpoint(sagemaker, plan.endpoint_name)
    if described is None:
        return [], []
    live, planned = _live_mode(sagemaker, described), _planned_mode(plan)
    if live is None:
        config = described["EndpointConfigName"]
        return [f"not compared: the mode of {plan.endpoint_name}, as {config} was deleted"], []
    if live == planned:
        return [], []
    return [], [
        Problem(
            Code.MODE_CHANGE,
            Kind.STATE,
            f"{plan.endpoint_name} is {live} and would become {planned}: AWS documents no such "
            "update",
            f"Run `cdk destroy {plan.name} -c models={plan.name} -c env={plan.environment}` when "
            "nobody uses the endpoint, then deploy.",
        )
    ]


def _live_mode(sagemaker: Any, described: Mapping[str, Any]) -> str | None:
    """Returns the mode of an endpoint; None if its configuration was deleted.

    Args:
        sagemaker: boto3's client.
        described: DescribeEndpoint's answer.
    """
    if "AsyncInferenceConfig" in described:
        return _ASYNCHRONOUS
    config = described_config(sagemaker, described["EndpointConfigName"])
    if config is None:
        return None
    return _COMPONENTS if hosts_components(config) else _REAL_TIME


def _planned_mode(plan: DeploymentPlan) -> str:
    if plan.asynchronous is not None:
        return _ASYNCHRONOUS
    return _REAL_TIME if plan.component is None else _COMPONENTS
