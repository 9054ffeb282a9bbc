"""A stack that serves the sample: the least that is needed for it."""

import json
from typing import Any

from slipway.access import open_access
from slipway.project import Project
from slipway.publishing.publish import publish
from tests.publishing.progress import Progress
from tests.support.roles import ROLE_PROPERTIES
from tests.support.waiting import eventually
from tests.support.workbench import MODEL, Workbench

STACK = ENDPOINT = "served"
BUCKET = "slipway-local-123456789012-us-east-1"
# With the right to publish the metrics of the endpoint's machine.
_METRICS = {"Effect": "Allow", "Action": "cloudwatch:PutMetricData", "Resource": "*"}
_ROLE: dict[str, Any] = {
    **ROLE_PROPERTIES,
    "Policies": [
        *ROLE_PROPERTIES["Policies"],
        {
            "PolicyName": "metrics",
            "PolicyDocument": {"Version": "2012-10-17", "Statement": [_METRICS]},
        },
    ],
}


def deploy(bench: Workbench) -> None:
    bench.client("s3").create_bucket(Bucket=BUCKET)
    project = Project(bench.project)
    environment = project.environment("local")
    access = open_access(environment, project.root)
    publish(project, MODEL, environment, access, Progress())
    plan = project.plan(MODEL, environment)
    source = {"S3Uri": plan.artifact.s3_uri, "S3DataType": "S3Prefix", "CompressionType": "None"}
    resources = {
        "Role": ("AWS::IAM::Role", _ROLE),
        "Model": (
            "AWS::SageMaker::Model",
            {
                "ExecutionRoleArn": {"Fn::GetAtt": ["Role", "Arn"]},
                "PrimaryContainer": {
                    "Image": plan.image.uri,
                    "Environment": dict(plan.container_environment),
                    "ModelDataSource": {"S3DataSource": source},
                },
            },
        ),
        "Config": (
            "AWS::SageMaker::EndpointConfig",
            {
                "ProductionVariants": [
                    {
                        "VariantName": "AllTraffic",
                        "ModelName": {"Fn::GetAtt": ["Model", "ModelName"]},
                        "InstanceType": "ml.g4dn.xlarge",
                        "InitialInstanceCount": 1,
                        "InitialVariantWeight": 1,
                    }
                ]
            },
        ),
        "Endpoint": (
            "AWS::SageMaker::Endpoint",
            {
                "EndpointName": ENDPOINT,
                "EndpointConfigName": {"Fn::GetAtt": ["Config", "EndpointConfigName"]},
            },
        ),
    }
    template = {
        "Resources": {
            name: {"Type": kind, "Properties": properties}
            for name, (kind, properties) in resources.items()
        }
    }
    bench.client("cloudformation").create_stack(
        StackName=STACK, TemplateBody=json.dumps(template), Capabilities=["CAPABILITY_IAM"]
    )


def await_serving(bench: Workbench) -> None:
    eventually(lambda: bench.stack_status(STACK) != "CREATE_IN_PROGRESS")
    assert bench.stack_status(STACK) == "CREATE_COMPLETE"
    (answer,) = bench.ask(ENDPOINT, {"inputs": "The Amazon Resource Name (ARN)"})
    assert answer["generated_text"]
