"""What is live beside a plan: the stack, the mode of the endpoint, and the deployed commit."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from slipway.access import Access, existing
from slipway.codes.code import Code
from slipway.config.names import COMMIT_RULE
from slipway.deployed.calls import describe_endpoint, described_component, described_config
from slipway.deployed.served import mode_of, served_by
from slipway.errors import Problem
from slipway.git import find_commit, git
from slipway.operations.deployment import find_deployment, find_obstacle
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


def compare_stack(plan: DeploymentPlan, access: Access) -> Iterator[Finding]:
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


def compare_commits(plan: DeploymentPlan, access: Access, root: Path) -> Iterator[str]:
    """Yields a warning if the stack was deployed from a commit that this checkout lacks.

    Outside git nothing is compared, and neither is a stack that tells no commit.
    """
    head = find_commit(root, "HEAD")
    get = access.client("cloudformation").get_template
    answer = head and existing(get, "ValidationError", StackName=plan.stack_name)
    if not answer:
        return
    body = answer["TemplateBody"]
    template = json.loads(body) if isinstance(body, str) else body
    rule = template.get("Rules", {}).get(COMMIT_RULE)
    if rule is None:
        return
    deployed = rule["Assertions"][0]["Assert"]["Fn::Not"][0]["Fn::Contains"][0][0]
    # 0 for an ancestor, 1 for none, and another code for a commit that is not there.
    found = git(root, "merge-base", "--is-ancestor", deployed, "HEAD").returncode
    if found:
        where = f"is no ancestor of {head}" if found == 1 else f"the clone at {head} does not have"
        yield (
            f"{plan.stack_name} was deployed from commit {deployed}, which {where}: a deploy may "
            "take back what that commit has. Fetch it and the history, and merge it"
        )
