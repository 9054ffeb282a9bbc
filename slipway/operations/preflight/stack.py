"""Whether CloudFormation and SageMaker take a deployment of a stack as it is."""

from collections.abc import Iterator

from slipway.access import Access
from slipway.codes.code import Code
from slipway.deployed.calls import describe_endpoint
from slipway.deployed.served import served_by
from slipway.operations.deployment import find_deployment, find_obstacle
from slipway.operations.preflight.findings import Finding, wrong
from slipway.planning.plan import DeploymentPlan


def compare_stack(plan: DeploymentPlan, access: Access) -> Iterator[Finding]:
    """Looks at the stack of a plan, and whether its endpoint is there with what it serves."""
    sagemaker, name = access.client("sagemaker"), plan.stack_name
    stack = find_deployment(access.client("cloudformation"), name)
    if stack is not None and stack.in_progress:
        yield wrong(
            Code.STACK_AT_REST,
            f"the stack {name} is {stack.status}, and takes no other deployment meanwhile",
            f"Wait until `slipway status {plan.config.name}` tells no change.",
        )
        return
    described = describe_endpoint(sagemaker, plan.endpoint_name)
    config = described and described["EndpointConfigName"]
    gone = served_by(sagemaker, config, name)[0].gone if config else None
    has_endpoint = None if plan.host else described is not None
    if (problem := find_obstacle(name, stack, has_endpoint=has_endpoint, gone=gone)) is not None:
        yield problem
