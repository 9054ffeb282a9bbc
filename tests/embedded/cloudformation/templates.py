"""Builds templates for these tests."""

from typing import Any

ACCOUNT = "123456789012"
ARN = f"arn:aws:{{}}:eu-west-1:{ACCOUNT}:{{}}"
TRUST = {
    "Version": "2012-10-17",
    "Statement": [
        {
            "Effect": "Allow",
            "Action": "sts:AssumeRole",
            "Principal": {"Service": "sagemaker.amazonaws.com"},
        }
    ],
}


def read_policy(action: str) -> dict[str, Any]:
    return {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Action": action, "Resource": "*"}],
    }


def resource(type_name: str, **properties: Any) -> dict[str, Any]:
    return {"Type": type_name, "Properties": properties}


def template(outputs: dict[str, Any] | None = None, **resources: Any) -> dict[str, Any]:
    described = {name: {"Value": value} for name, value in (outputs or {}).items()}
    return {"Resources": resources, "Outputs": described}


def get_att(logical_id: str, attribute: str) -> dict[str, Any]:
    return {"Fn::GetAtt": [logical_id, attribute]}
