"""Roles for SageMaker in an embedded account."""

import json
from typing import Any

TRUST = {
    "Version": "2012-10-17",
    "Statement": [
        {
            "Effect": "Allow",
            "Principal": {"Service": "sagemaker.amazonaws.com"},
            "Action": "sts:AssumeRole",
        }
    ],
}
# What SageMaker does with model data, with the input and output of jobs, and with rollback alarms.
MAY_USE_OBJECTS = {
    "Version": "2012-10-17",
    "Statement": [
        {
            "Effect": "Allow",
            "Action": [
                "cloudwatch:DescribeAlarms", "kms:Decrypt", "kms:GenerateDataKey",
                "s3:GetObject", "s3:ListBucket", "s3:PutObject",
            ],
            "Resource": "*",
        }
    ],
}  # fmt: skip
# The properties of a role in a template.
ROLE_PROPERTIES = {
    "AssumeRolePolicyDocument": TRUST,
    "Policies": [{"PolicyName": "objects", "PolicyDocument": MAY_USE_OBJECTS}],
}


def make_role(
    iam: Any, name: str, policy: Any = None, service: str = "sagemaker.amazonaws.com"
) -> str:
    """Makes a role that a service may take on; returns its ARN.

    Without a policy it may do all that SageMaker does with objects.
    """
    trust = json.dumps(TRUST).replace("sagemaker.amazonaws.com", service)
    role = iam.create_role(RoleName=name, AssumeRolePolicyDocument=trust)["Role"]
    iam.put_role_policy(
        RoleName=name, PolicyName="p", PolicyDocument=json.dumps(policy or MAY_USE_OBJECTS)
    )
    arn: str = role["Arn"]
    return arn
