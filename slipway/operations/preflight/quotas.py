"""The account's quota of instances beside the instances that the next update needs.

An update starts the new fleet beside the old one. Without room for both it fails after minutes, or
in the middle of the night in which the old fleet had scaled out.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from slipway.access import Access, paged
from slipway.codes.code import Code
from slipway.deployed.calls import describe_endpoint
from slipway.deployed.served import served_by
from slipway.errors import Problem
from slipway.operations.preflight.findings import Finding, wrong
from slipway.planning.plan import DeploymentPlan, VariantPlan
from slipway.planning.rollout import ROLLING

_SERVICE = "sagemaker"


def quota_name(instance_type: str) -> str:
    return f"{instance_type} for endpoint usage"


def compare_quotas(plan: DeploymentPlan, access: Access) -> Iterator[Finding]:
    """Compares the quotas of a plan's instance types with the fleets of its next update.

    The instances of other endpoints count too. They are not looked at, so the room may be smaller.
    """
    if plan.host is not None:
        return  # the stack starts no instance
    sagemaker = access.client("sagemaker")
    described = describe_endpoint(sagemaker, plan.endpoint_name) or {}
    live = {
        item["VariantName"]: int(item.get("CurrentInstanceCount", 0))
        for variants in ("ProductionVariants", "ShadowProductionVariants")
        for item in described.get(variants, ())
    }
    live_types: Mapping[str, tuple[str, ...]] = {}
    if described:
        _, live_types, _ = served_by(sagemaker, described["EndpointConfigName"])
    needs = {
        name: _instances(plan, live, live_types, name)
        for name in dict.fromkeys(
            name for each in plan.every_variant for name in each.instance_types
        )
    }
    quotas = dict(_quotas(access.client("service-quotas"), needs))
    short: dict[str, Problem] = {}
    for name, (running, new) in needs.items():
        quota = quotas.get(name)
        if quota is None:
            yield f"quota {quota_name(name)!r}: Service Quotas does not list it"
        elif running + new <= quota["Value"]:
            yield f"quota {quota_name(name)!r} of {quota['Value']:g} for {running + new}"
        else:
            short[name] = _too_small(plan, name, quota, running, new)
    for name, problem in short.items():
        # SageMaker tries the next type of a pool.
        if any(set(each.instance_types) <= short.keys() for each in _with(plan, name)):
            yield problem


def _with(plan: DeploymentPlan, instance_type: str) -> Iterator[VariantPlan]:
    return (each for each in plan.every_variant if instance_type in each.instance_types)


def _instances(
    plan: DeploymentPlan,
    live: Mapping[str, int],
    live_types: Mapping[str, tuple[str, ...]],
    instance_type: str,
) -> tuple[int, int]:
    running = sum(
        count for name, count in live.items() if instance_type in live_types.get(name, ())
    )
    new = 0
    for variant in _with(plan, instance_type):
        count = variant.instance_count
        if plan.config.autoscaling is not None and variant is not plan.shadow:
            # The update keeps the fleet's size.
            count = live.get(variant.name, count)
        if live and plan.rollout is not None and plan.rollout.strategy == ROLLING:
            count = plan.rollout.step_of(count)
        new += count
    return running, new


def _quotas(client: Any, types: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields the quotas of instance types; the last one of a type is the one that applies."""
    names = {quota_name(name): name for name in types}
    # A quota that was never changed may have only a default.
    for operation in ("list_aws_default_service_quotas", "list_service_quotas"):
        for quota in paged(client, operation, "Quotas", ServiceCode=_SERVICE):
            if quota["QuotaName"] in names:
                yield names[quota["QuotaName"]], quota


def _too_small(
    plan: DeploymentPlan, name: str, quota: Mapping[str, Any], running: int, new: int
) -> Problem:
    beside = f": {running} run, and {new} start beside them" if running else ""
    return wrong(
        Code.QUOTA,
        f"the quota {quota_name(name)!r} is {quota['Value']:g} in {plan.environment.region}, and "
        f"the deployment needs {running + new}{beside}",
        "Ask for more with `aws service-quotas request-service-quota-increase --service-code "
        f"{_SERVICE} --quota-code {quota['QuotaCode']} --desired-value {running + new} --region "
        f"{plan.environment.region}`"
        + (", or set `rollout.strategy: rolling`." if running else ", or choose another type."),
    )
