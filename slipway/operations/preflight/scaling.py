"""What autoscaling means for the next deployment: the plan beside what is live."""

from collections.abc import Iterator
from typing import Any

from botocore.exceptions import ClientError

from slipway.access import Access, paged
from slipway.codes.code import Code
from slipway.config.sections.scaling import Autoscaling
from slipway.deployed.calls import describe_endpoint, scaling_items
from slipway.deployed.described import INSTANCES
from slipway.deployed.served import served_by
from slipway.errors import Problem
from slipway.operations.preflight.findings import Finding, wrong
from slipway.operations.status.differences import find_differences
from slipway.planning.plan import DeploymentPlan

_NAMESPACE = "sagemaker"
_TARGET = "AWS::ApplicationAutoScaling::ScalableTarget"
# Settings that a policy holds.
_OF_POLICIES = ("autoscaling.target_", "autoscaling.scale_", "autoscaling.steps")
_POLICY = "AWS::ApplicationAutoScaling::ScalingPolicy"


def compare_scaling(plan: DeploymentPlan, access: Access) -> Iterator[Finding]:
    """Compares the live endpoint's scalable targets with a plan.

    SageMaker refuses to remove a variant that is registered with Application Auto Scaling, or to
    change its instance types. The stack deregisters the targets that it made, and their policies
    with them.
    """
    if plan.host is not None:
        return  # the stack changes no variant
    sagemaker = access.client("sagemaker")
    described = describe_endpoint(sagemaker, plan.endpoint_name)
    if described is None:
        return
    _, live, _ = served_by(sagemaker, described["EndpointConfigName"])
    registered = _registered(access, plan.endpoint_name, list(live))
    planned = {variant.name: variant.instance_types for variant in plan.variants}
    resources = set(_stack_resources(access.client("cloudformation"), plan.stack_name))
    for name in live:
        resource_id = _resource_id(plan.endpoint_name, name)
        is_ours = (_TARGET, f"{resource_id}|{INSTANCES}|{_NAMESPACE}") in resources
        is_changed = planned.get(name) != live[name]
        if name not in registered:
            if is_ours and plan.config.autoscaling is not None and name in planned:
                yield _gone(plan.config.autoscaling, name, resource_id)
        elif is_ours and (is_changed or plan.config.autoscaling is None):
            yield f"autoscaling: {name} {_fate(plan, name, live[name])}"
        elif is_ours and (policies := _lost_policies(access, resource_id, resources)):
            yield _lost(plan, access, described["EndpointConfigName"], policies)
        elif is_changed:
            yield _not_ours(name, resource_id)


def _lost_policies(access: Access, resource_id: str, resources: set[tuple[str, str]]) -> list[str]:
    """Returns the stack's policies that are gone, or that have another ARN than in the stack."""
    policies = scaling_items(
        access.client("application-autoscaling"),
        "describe_scaling_policies",
        ResourceId=resource_id,
        ScalableDimension=INSTANCES,
    )
    live = {policy["PolicyARN"] for policy in policies}
    own = {arn for kind, arn in resources if kind == _POLICY and f"/{resource_id}:policy" in arn}
    return sorted(arn.rpartition("/")[2] for arn in own - live)


def _lost(plan: DeploymentPlan, access: Access, config_name: str, policies: list[str]) -> Finding:
    """Says what it means that a target was deregistered, also if that was undone."""
    text = (
        f"{' and '.join(policies)} went with a scalable target that was deregistered: "
        "CloudFormation cannot change such a policy, nor roll a change of it back"
    )
    differences = find_differences(plan, access, config_name, is_protected=False)
    if not any(each.setting.startswith(_OF_POLICIES) for each in differences):
        return f"autoscaling: {text}. A policy of the same name was put again, and does not change"
    return wrong(
        Code.LOST_SCALING_POLICY,
        text,
        "Deploy the change together with another instance type, which makes new policies. Or "
        "deploy once without `autoscaling`, then with it.",
    )


def _fate(plan: DeploymentPlan, name: str, live: tuple[str, ...]) -> str:
    planned = {variant.name: variant.instance_types for variant in plan.variants}.get(name)
    if planned is None:
        return "is deregistered first, since the variant goes"
    if plan.config.autoscaling is None:
        return "is deregistered first, since the files do not scale it any more"
    return (
        f"does not scale while it goes from {', '.join(live)} to {', '.join(planned)}; "
        "it is deregistered before the update and registered again after it"
    )


def _not_ours(name: str, resource_id: str) -> Problem:
    return wrong(
        Code.FOREIGN_SCALABLE_TARGET,
        f"the variant {name} is a scalable target that its stack did not make: SageMaker refuses "
        "to remove the variant or to change its instances",
        "Run `aws application-autoscaling deregister-scalable-target --service-namespace "
        f"{_NAMESPACE} --scalable-dimension {INSTANCES} --resource-id {resource_id}`, deploy, and "
        "register it again.",
    )


def _gone(scaling: Autoscaling, name: str, resource_id: str) -> Problem:
    return wrong(
        Code.LOST_SCALABLE_TARGET,
        f"the stack made {name} a scalable target, which it no longer is: it does not scale, and "
        "CloudFormation cannot change it",
        "Run `aws application-autoscaling register-scalable-target --service-namespace "
        f"{_NAMESPACE} --scalable-dimension {INSTANCES} --resource-id {resource_id} "
        f"--min-capacity {scaling.min_instance_count} --max-capacity "
        f"{scaling.max_instance_count}`. Its policies are gone too: `slipway preflight` then "
        "says what to do.",
    )


def _registered(access: Access, endpoint_name: str, names: list[str]) -> list[str]:
    targets = scaling_items(
        access.client("application-autoscaling"),
        "describe_scalable_targets",
        ResourceIds=[_resource_id(endpoint_name, name) for name in names],
        ScalableDimension=INSTANCES,
    )
    found = {target["ResourceId"] for target in targets}
    return [name for name in names if _resource_id(endpoint_name, name) in found]


def _stack_resources(cloudformation: Any, stack: str) -> Iterator[tuple[str, str]]:
    """Yields type and physical id of a stack's resources; none where there is no stack."""
    operation, key = "list_stack_resources", "StackResourceSummaries"
    try:
        for item in paged(cloudformation, operation, key, StackName=stack):
            if not item["ResourceStatus"].startswith("DELETE"):
                yield item["ResourceType"], item.get("PhysicalResourceId", "")
    except ClientError as error:
        if "does not exist" not in error.response["Error"]["Message"]:
            raise


def _resource_id(endpoint_name: str, variant: str) -> str:
    return f"endpoint/{endpoint_name}/variant/{variant}"
