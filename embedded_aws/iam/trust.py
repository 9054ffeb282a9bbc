"""Checks whether a service may assume a role."""

import json
from typing import Any
from urllib.parse import unquote

from botocore.exceptions import ClientError

from slipway.embedded_aws.api import Caller, ValidationError
from slipway.embedded_aws.clients import LoopbackClients
from slipway.embedded_aws.iam.permissions import listed, matches

_SAGEMAKER = "sagemaker.amazonaws.com"


def require_role(clients: LoopbackClients, caller: Caller, arn: str, source: str = "*") -> None:
    """Raises ValidationError unless a role exists and trusts SageMaker in the caller's account.

    Of the trust policy's conditions, `aws:SourceAccount` and `aws:SourceArn` are evaluated. The
    source is the end of the ARN that SageMaker names. For hosting it is an asterisk, and no
    endpoint:
    https://docs.aws.amazon.com/sagemaker/latest/dg/security-confused-deputy-prevention.html
    """
    if not is_assumable(clients, caller, arn, _SAGEMAKER, source):
        raise ValidationError(
            f"Could not assume role {arn}. Please ensure that the role exists and allows "
            f"principal '{_SAGEMAKER}' to assume the role."
        )


def is_assumable(
    clients: LoopbackClients, caller: Caller, arn: str, principal: str, source: str
) -> bool:
    """Returns whether a role exists and trusts a service for a resource of the caller's account.

    The source is the end of the resource's ARN, after the account.
    """
    service = principal.partition(".")[0]
    source_arn = f"arn:aws:{service}:{caller.region}:{caller.account_id}:{source}"
    iam = clients.client("iam", caller.region)
    try:
        role = iam.get_role(RoleName=arn.rpartition("/")[2])["Role"]
    except ClientError:
        return False
    return role["Arn"] == arn and _is_trusted(
        role["AssumeRolePolicyDocument"], caller.account_id, principal, source_arn
    )


def _is_trusted(policy: Any, account_id: str, principal_service: str, source_arn: str) -> bool:
    document = json.loads(unquote(policy)) if isinstance(policy, str) else policy
    for statement in listed(document["Statement"]):
        principal = statement.get("Principal", {})
        services = listed(principal.get("Service", [])) if isinstance(principal, dict) else []
        if statement["Effect"] != "Allow" or principal_service not in services:
            continue
        if _is_for(account_id, source_arn, statement.get("Condition", {})):
            return True
    return False


def _is_for(account_id: str, source_arn: str, conditions: Any) -> bool:
    """Returns whether account and resource meet the conditions about them, if there are some."""
    told = {"aws:sourceaccount": account_id, "aws:sourcearn": source_arn}
    return all(
        matches(patterns, told[key.lower()])
        for keys in conditions.values()
        for key, patterns in keys.items()
        if key.lower() in told
    )
