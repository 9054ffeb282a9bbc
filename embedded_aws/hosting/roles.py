"""Whether SageMaker may take on a role."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import unquote

from botocore.exceptions import ClientError

from embedded_aws.api import ApiError, Caller
from embedded_aws.clients import LoopbackClients
from embedded_aws.hosting.records import VALIDATION


def require_role(clients: LoopbackClients, caller: Caller, arn: str) -> None:
    """Checks that a role is there and trusts SageMaker.

    Raises:
        ApiError: it does not.
    """
    iam = clients.client("iam", caller.region)
    try:
        role = iam.get_role(RoleName=arn.rpartition("/")[2])["Role"]
    except ClientError:
        role = None
    if role is None or role["Arn"] != arn or not _is_trusted(role["AssumeRolePolicyDocument"]):
        raise ApiError(
            VALIDATION,
            f"Could not assume role {arn}. Please ensure that the role exists and allows "
            "principal 'sagemaker.amazonaws.com' to assume the role.",
        )


def _is_trusted(policy: Any) -> bool:
    document = json.loads(unquote(policy)) if isinstance(policy, str) else policy
    statements = document["Statement"]
    for statement in statements if isinstance(statements, list) else [statements]:
        principal = statement.get("Principal", {})
        services = principal.get("Service", []) if isinstance(principal, dict) else []
        named = services if isinstance(services, list) else [services]
        if statement["Effect"] == "Allow" and "sagemaker.amazonaws.com" in named:
            return True
    return False
