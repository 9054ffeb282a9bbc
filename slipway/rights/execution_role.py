"""The rights of a model's execution role, for a role that exists already, as a policy of IAM."""

from typing import Any

from slipway.config.environments import Environment
from slipway.planning.execution_rights import RoleContext, execution_rights
from slipway.planning.plan import DeploymentPlan
from slipway.planning.statements import policy_document
from slipway.rights.statements import Place, artifact_key


def role_policy(plan: DeploymentPlan, environment: Environment) -> dict[str, Any]:
    """Returns the policy of the execution role; Slipway gives its own roles the same rights."""
    place = Place(environment)
    groups = () if plan.vpc is None else plan.vpc.security_group_ids
    if plan.vpc is not None and not groups:
        # Only the account knows the id of the group that the foundation makes.
        groups = ("*",)
    context = RoleContext(place.partition, artifact_key(place, plan.artifact_place), groups)
    policies = execution_rights(plan, context)
    return policy_document(each for policy in policies for each in policy.statements)
