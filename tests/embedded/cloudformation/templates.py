"""Builds templates for these tests."""

from typing import Any

from tests.support.roles import ROLE_PROPERTIES

ACCOUNT = "123456789012"
ARN = f"arn:aws:{{}}:eu-west-1:{ACCOUNT}:{{}}"
IMAGE = f"{ACCOUNT}.dkr.ecr.eu-west-1.amazonaws.com/tests/stand-in:1"
INSTANCES = "sagemaker:variant:DesiredInstanceCount"


def policy(**statement: Any) -> dict[str, Any]:
    return {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", **statement}]}


def read_policy(action: str) -> dict[str, Any]:
    return policy(Action=action, Resource="*")


def resource(type_name: str, depends_on: str | None = None, **properties: Any) -> dict[str, Any]:
    after = {} if depends_on is None else {"DependsOn": depends_on}
    return {"Type": type_name, **after, "Properties": properties}


def template(outputs: dict[str, Any] | None = None, **resources: Any) -> dict[str, Any]:
    described = {name: {"Value": value} for name, value in (outputs or {}).items()}
    return {"Resources": resources, "Outputs": described}


def get_att(logical_id: str, attribute: str) -> dict[str, Any]:
    return {"Fn::GetAtt": [logical_id, attribute]}


def target(resource_id: str, dimension: str = INSTANCES, **properties: Any) -> dict[str, Any]:
    return resource(
        "AWS::ApplicationAutoScaling::ScalableTarget",
        ServiceNamespace="sagemaker",
        ResourceId=resource_id,
        ScalableDimension=dimension,
        **properties,
    )


def hosting(name: str, mark: str, mode: str, **variant: Any) -> dict[str, Any]:
    """A role, a model of the stand-in, its configuration and its endpoint."""
    main = {
        "VariantName": "main",
        "InstanceType": "ml.g5.xlarge",
        "InitialInstanceCount": "1",
        "InitialVariantWeight": 1,
        **variant,
    }
    return {
        "Role": resource("AWS::IAM::Role", **ROLE_PROPERTIES),
        "Model": resource(
            "AWS::SageMaker::Model",
            PrimaryContainer={"Image": IMAGE, "Environment": {"MARK": mark, "MODE": mode}},
        ),
        "Config": resource("AWS::SageMaker::EndpointConfig", ProductionVariants=[main]),
        "Endpoint": resource(
            "AWS::SageMaker::Endpoint",
            EndpointName=name,
            EndpointConfigName=get_att("Config", "EndpointConfigName"),
        ),
    }
