"""An existing execution role: whether SageMaker may assume it, and whether it has its rights."""

import itertools
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from botocore.exceptions import ClientError

from slipway.access import Access, existing
from slipway.codes.code import Code
from slipway.operations.preflight.findings import Finding, wrong
from slipway.planning.execution_rights import RoleContext, execution_rights
from slipway.planning.plan import DeploymentPlan
from slipway.planning.statements import Key, Statement
from slipway.rights.statements import alias_condition

_SAGEMAKER = "sagemaker.amazonaws.com"
_ALLOWED = "allowed"
_CLOSED = ("AccessDenied", "AccessDeniedException")


def examine_role(
    plan: DeploymentPlan, arn: str, access: Access, *, key_arn: str, made_group: str | None
) -> Iterator[Finding]:
    """Looks whether SageMaker may assume a role, and whether the role has every right.

    Policies of buckets and keys are not simulated. `made_group` is the foundation's security group.
    """
    iam = access.client("iam")
    try:
        found = existing(iam.get_role, "NoSuchEntity", RoleName=arn.rpartition("/")[2])
    except ClientError as error:
        yield _unchecked(arn, "trust policy", "iam:GetRole", error)
    else:
        if found is None:
            remedy = "Correct `execution_role_arn`, or make the role."
            yield wrong(Code.EXECUTION_ROLE_TRUST, f"the role {arn} does not exist", remedy)
            return
        document, environment = found["Role"]["AssumeRolePolicyDocument"], plan.environment
        # SageMaker names no endpoint, but an asterisk:
        # https://docs.aws.amazon.com/sagemaker/latest/dg/security-confused-deputy-prevention.html
        here = f"{environment.region}:{environment.account}"
        source_arn = f"arn:{arn.split(':')[1]}:sagemaker:{here}:*"
        if _is_trusted(document, environment.account, source_arn):
            yield f"execution role {arn}, which trusts SageMaker"
        else:
            yield wrong(
                Code.EXECUTION_ROLE_TRUST,
                f"the role {arn} does not let SageMaker assume it for account "
                f"{plan.environment.account}",
                f"Allow `sts:AssumeRole` to the service {_SAGEMAKER} in its trust policy. A "
                f"condition on `aws:SourceArn` must allow {source_arn}.",
            )
    place = plan.artifact_place
    conditions = {} if place.key_arn is not None else alias_condition(place)
    groups: tuple[str, ...] = ()
    if plan.vpc is not None:
        groups = plan.vpc.security_group_ids or ((made_group,) if made_group else ())
    rights = _rights(plan, RoleContext(arn.split(":")[1], Key(key_arn, conditions), groups))
    try:
        denied = {right.sid: missing for right in rights if (missing := _denied(iam, arn, right))}
    except ClientError as error:
        yield _unchecked(arn, "rights", "iam:SimulatePrincipalPolicy", error)
        return
    if not denied:
        yield f"the {len(rights)} rights of the execution role"
    remedy = (
        f"Give the role what `slipway iam {plan.config.name} --execution-role --env "
        f"{plan.environment.name}` prints."
    )
    for sid, missing in denied.items():
        message = f"the role {arn} lacks the right {sid}: {', '.join(missing)}"
        yield wrong(Code.EXECUTION_ROLE_RIGHTS, message, remedy)


def _rights(plan: DeploymentPlan, context: RoleContext) -> list[Statement]:
    return [right for policy in execution_rights(plan, context) for right in policy.statements]


def _denied(iam: Any, arn: str, right: Statement) -> list[str]:
    pages = iam.get_paginator("simulate_principal_policy")
    found: dict[str, None] = {}
    for resource, context in itertools.product(right.resources, _contexts(right)):
        for page in pages.paginate(
            PolicySourceArn=arn,
            ActionNames=list(right.actions),
            ResourceArns=[resource],
            ContextEntries=context,
        ):
            for result in page["EvaluationResults"]:
                if result["EvalDecision"] != _ALLOWED:
                    found[f"{result['EvalActionName']} on {resource}"] = None
    return list(found)


def _contexts(right: Statement) -> Iterator[list[dict[str, Any]]]:
    """Yields the context of each simulation: one value of each condition key."""
    keys = [
        (operator, name, values if isinstance(values, list) else [values])
        for operator, named in right.conditions.items()
        for name, values in named.items()
    ]
    for values in itertools.product(*(each for *_, each in keys)):
        yield [
            {
                "ContextKeyName": name,
                "ContextKeyValues": [value],
                "ContextKeyType": "stringList" if ":" in operator else "string",
            }
            for (operator, name, _), value in zip(keys, values, strict=True)
        ]


def _is_trusted(document: Mapping[str, Any], account: str, source_arn: str) -> bool:
    """Returns whether a trust policy lets SageMaker assume its role for an account and a source.

    Of the conditions, `aws:SourceAccount` and `aws:SourceArn` are evaluated.
    """
    told = {"aws:sourceaccount": account, "aws:sourcearn": source_arn}
    for statement in _listed(document["Statement"]):
        principal = statement.get("Principal", {})
        services = _listed(principal.get("Service", [])) if isinstance(principal, dict) else []
        actions = [str(each).lower() for each in _listed(statement.get("Action", []))]
        named = {"sts:assumerole", "sts:*", "*"} & set(actions)
        if statement["Effect"] == "Allow" and _SAGEMAKER in services and named:
            conditions = [
                (told[key.lower()], _listed(value))
                for keys in statement.get("Condition", {}).values()
                for key, value in keys.items()
                if key.lower() in told
            ]
            if all(
                any(fnmatchcase(value, pattern) for pattern in patterns)
                for value, patterns in conditions
            ):
                return True
    return False


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _unchecked(arn: str, part: str, action: str, error: ClientError) -> str:
    """Returns the line about a part of a role that the caller may not see; raises another error."""
    if error.response["Error"]["Code"] not in _CLOSED:
        raise error
    return f"not checked: the {part} of {arn}, because these credentials may not {action}"
