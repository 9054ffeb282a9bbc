"""The check of a VpcConfig: its subnets and security groups exist, in one VPC."""

from collections.abc import Mapping
from typing import Any

from botocore.exceptions import ClientError

from slipway.embedded_aws.api import ValidationError


def check_network(ec2: Any, config: Mapping[str, Any]) -> None:
    """Raises `ValidationError`, in EC2's words where it has some, unless all exist in one VPC."""
    wanted = config["SecurityGroupIds"]
    try:
        subnets = ec2.describe_subnets(SubnetIds=config["Subnets"])["Subnets"]
    except ClientError as error:
        raise ValidationError(error.response["Error"]["Message"]) from error
    groups = ec2.describe_security_groups(Filters=[{"Name": "group-id", "Values": wanted}])
    groups = groups["SecurityGroups"]
    for missing in sorted(set(wanted) - {group["GroupId"] for group in groups}):
        raise ValidationError(f"The security group '{missing}' does not exist")
    vpc_ids = {subnet["VpcId"] for subnet in subnets}
    if len(vpc_ids) > 1:
        raise ValidationError(f"The subnets are in several VPCs: {sorted(vpc_ids)}.")
    for group in groups:
        if group["VpcId"] not in vpc_ids:
            raise ValidationError(
                f"Security group {group['GroupId']} and subnet {config['Subnets'][0]} belong to "
                "different networks."
            )
