"""The KMS key of an endpoint's storage volumes: a grant while the endpoint runs.

No volume exists here, so nothing is encrypted. What AWS needs of the key is checked: it exists, it
is enabled, and the execution role may make grants.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

from botocore.exceptions import ClientError

from slipway.embedded_aws.iam.permissions import may
from slipway.embedded_aws.iam.s3_access import denial
from slipway.embedded_aws.identity import ACCOUNT_ID

# Of https://docs.aws.amazon.com/kms/latest/developerguide/services-ebs.html, read 2026-11-24: the
# operations of the grants with which EC2 attaches an encrypted volume.
_OPERATIONS = ["Decrypt", "GenerateDataKeyWithoutPlaintext", "ReEncryptFrom", "ReEncryptTo"]
_SYMMETRIC = "SYMMETRIC_DEFAULT"


class VolumeKeyError(Exception):
    """The key cannot be used; the message is KMS's or IAM's where they have one."""


@contextlib.contextmanager
def volume_grant(kms: Any, key_id: str, role: str | None) -> Iterator[None]:
    """Makes the grant on one variant's key, and revokes it at the end, if the role still may.

    `key_id` is an id, an ARN or an alias. A model without a role is allowed everything. Raises
    `VolumeKeyError` if the key does not exist or is of no use, or the role may not do this.
    """
    try:
        key = kms.describe_key(KeyId=key_id)["KeyMetadata"]
    except ClientError as error:
        raise VolumeKeyError(error.response["Error"]["Message"]) from error
    arn = key["Arn"]
    if role is not None and not may(role, "kms:CreateGrant", arn):
        raise VolumeKeyError(denial(role, "kms:CreateGrant", arn))
    if key["KeyState"] == "PendingDeletion":
        raise VolumeKeyError(f"{arn} is pending deletion.")
    if key["KeyState"] != "Enabled":
        raise VolumeKeyError(f"{arn} is disabled.")
    if key["KeySpec"] != _SYMMETRIC:
        raise VolumeKeyError(f"{arn} is no symmetric key, and volumes take no other.")
    principal = role or f"arn:aws:iam::{ACCOUNT_ID}:root"
    made = kms.create_grant(KeyId=arn, GranteePrincipal=principal, Operations=_OPERATIONS)
    try:
        yield
    finally:
        # Somebody may have revoked it meanwhile.
        with contextlib.suppress(ClientError):
            if role is None or may(role, "kms:CreateGrant", arn):
                kms.revoke_grant(KeyId=arn, GrantId=made["GrantId"])
