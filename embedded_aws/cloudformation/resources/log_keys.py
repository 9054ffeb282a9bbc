"""Encryption keys of log groups, which moto stores without checking their policies.

moto cannot change the key of a log group either.
"""

import json
from collections.abc import Mapping
from typing import Any

from botocore.exceptions import ClientError
from moto.logs.models import logs_backends

from slipway.embedded_aws.cloudformation.resources.base import ResourceContext, ResourceFailedError
from slipway.embedded_aws.iam.policies import listed, matches

# The operations that CloudWatch Logs calls with the log group as the encryption context.
_ACTIONS = ("kms:Decrypt", "kms:Encrypt", "kms:GenerateDataKey")
_CONTEXT_KEY = "kms:encryptioncontext:aws:logs:arn"
_POSITIVE = frozenset({"ArnEquals", "ArnLike", "StringEquals", "StringLike"})


def set_log_key(context: ResourceContext, group_name: str, key_arn: str | None) -> None:
    """Gives an existing log group another key, or none.

    Args:
        context: the resource that sets the key.
        group_name: name of the log group.
        key_arn: ARN of the key; None for CloudWatch Logs' own.

    Raises:
        ResourceFailedError: AWS would refuse the key.
    """
    if key_arn is not None:
        check_log_key(context, group_name, key_arn)
    # moto has neither AssociateKmsKey nor DisassociateKmsKey.
    logs_backends[context.identity.account_id][context.region].groups[
        group_name
    ].kms_key_id = key_arn


def check_log_key(context: ResourceContext, group_name: str, key_arn: str) -> None:
    """Checks that a key exists and that its policy lets CloudWatch Logs use it for a log group.

    Raises:
        ResourceFailedError: AWS would refuse the key; the message has AWS's words.
    """
    group_arn = context.arn("logs", f"log-group:{group_name}")
    kms = context.client("kms")
    try:
        enabled = kms.describe_key(KeyId=key_arn)["KeyMetadata"]["Enabled"]
        policy = kms.get_key_policy(KeyId=key_arn, PolicyName="default")["Policy"]
    except ClientError:
        enabled, policy = False, "{}"
    statements = json.loads(policy).get("Statement", [])
    service = f"logs.{context.region}.amazonaws.com"
    allowed = all(
        any(_allows(each, service, action, group_arn) for each in statements) for action in _ACTIONS
    )
    if not (enabled and allowed):
        raise ResourceFailedError(
            'Resource handler returned message: "The specified KMS key does not exist or is not '
            f"allowed to be used with Arn '{group_arn}' (Service: CloudWatchLogs, Status Code: "
            '400)" (HandlerErrorCode: GeneralServiceException)'
        )


def _allows(statement: Mapping[str, Any], service: str, action: str, group_arn: str) -> bool:
    principal = statement.get("Principal", {})
    services = principal if isinstance(principal, str) else principal.get("Service", [])
    return (
        statement["Effect"] == "Allow"
        and bool({service, "*"} & set(listed(services)))
        and matches(statement.get("Action", []), action)
        and _is_for(statement.get("Condition", {}), group_arn)
    )


def _is_for(conditions: Mapping[str, Mapping[str, Any]], group_arn: str) -> bool:
    """Returns whether a statement's conditions on the encryption context hold.

    Other condition keys are not evaluated.
    """
    return all(
        matches(patterns, group_arn)
        for operator, keys in conditions.items()
        if operator in _POSITIVE
        for key, patterns in keys.items()
        if key.lower() == _CONTEXT_KEY
    )
