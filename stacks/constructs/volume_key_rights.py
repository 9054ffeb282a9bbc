"""What SageMaker does with the key of an endpoint's volumes, as the execution role."""

from aws_cdk import aws_iam as iam
from constructs import Construct

from stacks.constructs.mode_rights import ModeRights
from stacks.constructs.statements import allow


def volume_key_rights(scope: Construct, *, role: iam.Role, key_arn: str) -> ModeRights:
    """Returns the right to make grants, with which EC2 attaches encrypted volumes.

    AWS documents the right for volume keys of jobs, and says of endpoints that the key must let the
    role use it. Sources, read 2026-11-24:
    https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-roles.html, and CreateEndpointConfig
    in botocore 1.44.

    Args:
        scope: the endpoint's stack.
        role: the execution role.
        key_arn: of the volumes.
    """
    return ModeRights(
        scope,
        "VolumeKey",
        role=role,
        statements=[allow("GrantVolumeKey", ["kms:CreateGrant"], key_arn)],
        reasons={},
    )
