"""What policies of IAM are made of: statements, and the ARNs of an account and region."""

from typing import Any

from slipway.config.environments import Environment

Statement = dict[str, Any]


def allow(sid: str, actions: list[str], *resources: str) -> Statement:
    """Returns a statement that allows actions on resources."""
    return {"Sid": sid, "Effect": "Allow", "Action": actions, "Resource": list(resources)}


class Place:
    """An account and region, and the ARNs of what is in them."""

    def __init__(self, environment: Environment) -> None:
        self.account = environment.account
        self.region = environment.region
        special = {"cn": "aws-cn", "us-gov": "aws-us-gov"}
        self.partition = next(
            (name for prefix, name in special.items() if self.region.startswith(f"{prefix}-")),
            "aws",
        )
        self.domain = "amazonaws.com.cn" if self.partition == "aws-cn" else "amazonaws.com"

    def arn(self, service: str, resource: str) -> str:
        """Returns the ARN of a service's resource in the account and region."""
        return f"arn:{self.partition}:{service}:{self.region}:{self.account}:{resource}"
