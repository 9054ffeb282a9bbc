"""The mode of a live endpoint, compared with a plan before a deploy."""

from collections.abc import Iterator, Mapping
from typing import Any

from slipway.access import Access
from slipway.codes.code import Code
from slipway.deployed.calls import describe_endpoint, described_component, described_config
from slipway.deployed.served import mode_of
from slipway.errors import Problem
from slipway.operations.preflight.findings import Finding, wrong
from slipway.planning.plan import DeploymentPlan

# By the name in `endpoint.mode`.
_WORDS = {
    "realtime": "real-time",
    "async": "asynchronous",
    "scale_to_zero": "an endpoint of inference components",
    "serverless": "serverless",
}


def compare_mode(plan: DeploymentPlan, access: Access) -> Iterator[Finding]:
    """Compares the live endpoint's mode with a plan.

    SageMaker refuses to remove a queue, in the words of
    https://github.com/aws/sagemaker-python-sdk/pull/3124 (read 2026-11-28), and to make an endpoint
    serverless: https://docs.aws.amazon.com/sagemaker/latest/dg/serverless-endpoints-update.html
    (read 2026-11-29). AWS documents no other update between the modes.
    """
    sagemaker = access.client("sagemaker")
    if (moved := _moved(sagemaker, plan)) is not None:
        yield moved
        return
    described = describe_endpoint(sagemaker, plan.endpoint_name)
    if described is None:
        if plan.host is not None:
            yield f"{plan.endpoint_name} is not there yet: `cdk deploy` makes it first"
        return
    live = _live_mode(sagemaker, described)
    if live is None:
        config = described["EndpointConfigName"]
        yield f"not compared: the mode of {plan.endpoint_name}, as {config} was deleted"
    elif live != plan.config.endpoint.mode:
        owner, mode = plan.host or plan.config.name, plan.config.endpoint.mode
        is_refused = live == "async" or mode == "serverless"
        yield wrong(
            Code.MODE_CHANGE,
            f"{plan.endpoint_name} is {_WORDS[live]} and would become {_WORDS[mode]}, "
            + ("which SageMaker refuses" if is_refused else "and AWS documents no such update"),
            f"Run `cdk destroy {owner} -c models={owner} -c env={plan.environment.name}` when "
            "nobody uses the endpoint, then deploy.",
        )


def _moved(sagemaker: Any, plan: DeploymentPlan) -> Problem | None:
    """Returns the problem of copies that run on another endpoint than the planned one."""
    if plan.component is None:
        return None
    live = described_component(sagemaker, plan.component.name)
    if live is None or live["EndpointName"] == plan.endpoint_name:
        return None
    name, environment = plan.config.name, plan.environment.name
    return wrong(
        Code.MODE_CHANGE,
        f"the copies of {name} run on the endpoint {live['EndpointName']}, and would move to "
        f"{plan.endpoint_name}: SageMaker has no operation that moves them",
        f"Run `cdk destroy {name} -c models={name} -c env={environment}` when "
        "nobody uses the model, then deploy.",
    )


def _live_mode(sagemaker: Any, described: Mapping[str, Any]) -> str | None:
    """Returns the mode as `endpoint.mode` has it; None if the configuration was deleted."""
    if "AsyncInferenceConfig" in described:
        return "async"
    config = described_config(sagemaker, described["EndpointConfigName"])
    return None if config is None else mode_of(config)
