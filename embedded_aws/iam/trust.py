"""Checks whether a service may assume a role."""

import json
from typing import Any
from urllib.parse import unquote

from botocore.exceptions import ClientError

from embedded_aws.api import Caller, ValidationError
from embedded_aws.clients import LoopbackClients
from embedded_aws.iam.policies import listed

_SAGEMAKER = "sagemaker.amazonaws.com"


def require_role(clients: LoopbackClients, caller: Caller, arn: str) -> None:
    """Checks that a role exists and trusts SageMaker in the caller's account.

    Of the trust policy's conditions, only StringEquals with `aws:SourceAccount` is evaluated.

    Raises:
        ValidationError: SageMaker cannot assume the role.
    """
    if not is_assumable(clients, caller, arn, _SAGEMAKER):
        raise ValidationError(
            f"Could not assume role {arn}. Please ensure that the role exists and allows "
            f"principal '{_SAGEMAKER}' to assume the role."
        )


def is_assumable(clients: LoopbackClients, caller: Caller, arn: str, principal: str) -> bool:
    """Returns whether a role exists and trusts a service in the caller's account."""
    iam = clients.client("iam", caller.region)
    try:
        role = iam.get_role(RoleName=arn.rpartition("/")[2])["Role"]
    except ClientError:
        return False
    return role["Arn"] == arn and _is_trusted(
        role["AssumeRolePolicyDocument"], caller.account_id, principal
    )


def _is_trusted(policy: Any, account_id: str, principal_service: str) -> bool:
    document = json.loads(unquote(policy)) if isinstance(policy, str) else policy
    for statement in listed(document["Statement"]):
        principal = statement.get("Principal", {})
        services = listed(principal.get("Service", [])) if isinstance(principal, dict) else []
        if statement["Effect"] != "Allow" or principal_service not in services:
            continue
        if _is_for(account_id, statement.get("Condition", {}).get("StringEquals", {})):
            return True
    return False


def _is_for(account_id: str, equal: Any) -> bool:
    """Returns whether the account meets the condition `aws:SourceAccount`, if there is one."""
    accounts = [value for key, value in equal.items() if key.lower() == "aws:sourceaccount"]
    return all(account_id in listed(item) for item in accounts)
