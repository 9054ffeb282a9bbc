"""Answers of AWS about an endpoint that Slipway did not make, and clients that give them.

Each answer is checked against botocore's model of the API, so none has a form that AWS never sends.
"""

import copy
import functools
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import boto3
from botocore.awsrequest import AWSResponse
from botocore.model import OperationModel
from botocore.validate import ParamValidator

from slipway.deployed.reader import read_endpoint
from slipway.importing.endpoint.endpoints import Hosted, hosted

NAME, REGION, ACCOUNT = "chat-old", "eu-west-1", "210987654321"
IMAGE = (
    f"763104351884.dkr.ecr.{REGION}.amazonaws.com/huggingface-pytorch-tgi-inference:"
    "2.4.0-tgi2.4.0-gpu-py311-cu124-ubuntu22.04"
)
DATA = "s3://acme-models/llama-2-7b/"
MOMENT = datetime(2026, 11, 1, tzinfo=UTC)
RESOURCE = f"endpoint/{NAME}/variant/primary"
COUNT = "sagemaker:variant:DesiredInstanceCount"
_HANDLER = "fake"

# Any: AWS's answers.
Answers = dict[str, dict[str, Any]]


def arn(kind: str, name: str) -> str:
    return f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:{kind}/{name}"


def answers() -> Answers:
    """Returns the answers about an endpoint of a notebook, by operation."""
    variant = {
        "VariantName": "primary",
        "ModelName": "chat-model",
        "InitialInstanceCount": 2,
        "InstanceType": "ml.g5.2xlarge",
        "InitialVariantWeight": 1.0,
        "ContainerStartupHealthCheckTimeoutInSeconds": 900,
        "EnableSSMAccess": False,
    }
    live = {"VariantName": "primary", "DesiredWeight": 1.0, "DesiredInstanceCount": 2}
    target = {
        "ServiceNamespace": "sagemaker",
        "ResourceId": RESOURCE,
        "ScalableDimension": COUNT,
        "CreationTime": MOMENT,
    }
    return {
        "DescribeEndpoint": {
            "EndpointName": NAME,
            "EndpointArn": arn("endpoint", NAME),
            "EndpointConfigName": "chat-config",
            "ProductionVariants": [live],
            "EndpointStatus": "InService",
            "CreationTime": MOMENT,
            "LastModifiedTime": MOMENT,
        },
        "DescribeEndpointConfig": {
            "EndpointConfigName": "chat-config",
            "EndpointConfigArn": arn("endpoint-config", "chat-config"),
            "ProductionVariants": [variant],
            "CreationTime": MOMENT,
        },
        "DescribeModel": {
            "ModelName": "chat-model",
            "ModelArn": arn("model", "chat-model"),
            "CreationTime": MOMENT,
            "ExecutionRoleArn": f"arn:aws:iam::{ACCOUNT}:role/notebook",
            "PrimaryContainer": {
                "Image": IMAGE,
                "Environment": {"SM_NUM_GPUS": "1"},
                "ModelDataSource": {
                    "S3DataSource": {
                        "S3Uri": DATA,
                        "S3DataType": "S3Prefix",
                        "CompressionType": "None",
                    }
                },
            },
        },
        "ListInferenceComponents": {"InferenceComponents": []},
        "DescribeInferenceComponent": {},
        "DescribeScalableTargets": {
            "ScalableTargets": [
                {**target, "MinCapacity": 1, "MaxCapacity": 4, "RoleARN": "arn:aws:iam::1:role/x"}
            ]
        },
        "DescribeScalingPolicies": {
            "ScalingPolicies": [
                {
                    **target,
                    "PolicyARN": "arn:aws:autoscaling:policy",
                    "PolicyName": "load",
                    "PolicyType": "TargetTrackingScaling",
                    "Alarms": [{"AlarmName": "TargetTracking-high", "AlarmARN": "arn:aws:x"}],
                    "TargetTrackingScalingPolicyConfiguration": {
                        "TargetValue": 600.0,
                        "PredefinedMetricSpecification": {
                            "PredefinedMetricType": "SageMakerVariantInvocationsPerInstance"
                        },
                        "ScaleInCooldown": 120,
                        "ScaleOutCooldown": 30,
                    },
                }
            ]
        },
        "DescribeScheduledActions": {"ScheduledActions": []},
        "DescribeAlarms": {
            "MetricAlarms": [
                alarm("slow", ExtendedStatistic="p99"),
                alarm("TargetTracking-high", Statistic="Sum", MetricName="InvocationsPerInstance"),
            ]
        },
        "ListTags": {"Tags": [{"Key": "team", "Value": "search"}]},
        "DescribeLogGroups": {
            "logGroups": [
                {"logGroupName": f"/aws/sagemaker/Endpoints/{NAME}", "retentionInDays": 60}
            ]
        },
        "ListObjectsV2": {},
    }


def component_answers() -> Answers:
    """Returns the answers about an endpoint whose only inference component may have no copies."""
    given, name = answers(), "chat-copies"
    variant(given).pop("ModelName")
    variant(given).pop("ContainerStartupHealthCheckTimeoutInSeconds")
    variant(given)["InitialInstanceCount"] = 1
    variant(given)["ManagedInstanceScaling"] = {
        "Status": "ENABLED",
        "MinInstanceCount": 0,
        "MaxInstanceCount": 5,
    }
    given["DescribeEndpointConfig"]["EnableNetworkIsolation"] = True
    given["DescribeEndpoint"]["ProductionVariants"][0]["DesiredInstanceCount"] = 0
    about = {
        "InferenceComponentName": name,
        "InferenceComponentArn": arn("inference-component", name),
        "EndpointArn": arn("endpoint", NAME),
        "EndpointName": NAME,
        "VariantName": "primary",
        "CreationTime": MOMENT,
        "LastModifiedTime": MOMENT,
    }
    given["ListInferenceComponents"] = {"InferenceComponents": [about]}
    given["DescribeInferenceComponent"] = {
        **about,
        "InferenceComponentStatus": "InService",
        "Specification": {
            "ModelName": "chat-model",
            "StartupParameters": {"ModelDataDownloadTimeoutInSeconds": 1200},
            "ComputeResourceRequirements": {
                "MinMemoryRequiredInMb": 2048,
                "NumberOfAcceleratorDevicesRequired": 1.0,
            },
        },
        "RuntimeConfig": {"DesiredCopyCount": 0, "CurrentCopyCount": 0},
    }
    copies = {
        "ServiceNamespace": "sagemaker",
        "ResourceId": f"inference-component/{name}",
        "ScalableDimension": "sagemaker:inference-component:DesiredCopyCount",
        "CreationTime": MOMENT,
    }
    given["DescribeScalableTargets"]["ScalableTargets"] = [
        {**copies, "MinCapacity": 0, "MaxCapacity": 3, "RoleARN": "arn:aws:iam::1:role/x"}
    ]
    wake = "arn:aws:autoscaling:eu-west-1:210987654321:scalingPolicy:1:policyName/wake"
    metric = "SageMakerInferenceComponentConcurrentRequestsPerCopyHighResolution"
    given["DescribeScalingPolicies"]["ScalingPolicies"] = [
        {
            **copies,
            "PolicyARN": "arn:aws:autoscaling:policy",
            "PolicyName": "load",
            "PolicyType": "TargetTrackingScaling",
            "TargetTrackingScalingPolicyConfiguration": {
                "TargetValue": 5.0,
                "PredefinedMetricSpecification": {"PredefinedMetricType": metric},
                "ScaleInCooldown": 600,
            },
        },
        {
            **copies,
            "PolicyARN": wake,
            "PolicyName": "wake",
            "PolicyType": "StepScaling",
            "Alarms": [{"AlarmName": "asleep", "AlarmARN": "arn:aws:x"}],
            "StepScalingPolicyConfiguration": {
                "AdjustmentType": "ChangeInCapacity",
                "Cooldown": 60,
                "StepAdjustments": [{"MetricIntervalLowerBound": 0.0, "ScalingAdjustment": 1}],
            },
        },
    ]
    dimensions = [{"Name": "InferenceComponentName", "Value": name}]
    given["DescribeAlarms"]["MetricAlarms"] = [
        alarm("slow", ExtendedStatistic="p99", Dimensions=dimensions),
        alarm(
            "asleep",
            Statistic="Sum",
            MetricName="NoCapacityInvocationFailures",
            Dimensions=dimensions,
            AlarmActions=[wake],
        ),
    ]
    return given


def alarm(name: str, **values: Any) -> dict[str, Any]:
    """Returns an alarm on one metric of the endpoint: its latency, above half a second."""
    return {
        "AlarmName": name,
        "MetricName": "ModelLatency",
        "Namespace": "AWS/SageMaker",
        "Dimensions": [
            {"Name": "EndpointName", "Value": NAME},
            {"Name": "VariantName", "Value": "primary"},
        ],
        "Period": 60,
        "EvaluationPeriods": 3,
        "Threshold": 500_000.0,
        "ComparisonOperator": "GreaterThanThreshold",
        "TreatMissingData": "notBreaching",
        "ActionsEnabled": True,
        "AlarmActions": ["arn:aws:sns:eu-west-1:210987654321:pager"],
        **values,
    }


def variant(given: Answers) -> dict[str, Any]:
    """Returns the endpoint configuration's first variant, to be changed."""
    found: dict[str, Any] = given["DescribeEndpointConfig"]["ProductionVariants"][0]
    return found


def container(given: Answers) -> dict[str, Any]:
    """Returns the model's container, to be changed."""
    found: dict[str, Any] = given["DescribeModel"]["PrimaryContainer"]
    return found


class FakeAws:
    """boto3 clients whose calls get answers, by operation, and reach nothing.

    Refused operations have an error code and a message. `s3` is a client that reaches objects.
    """

    def __init__(
        self,
        answers: Answers,
        refused: Mapping[str, tuple[str, str]] | None = None,
        s3: Any = None,
    ) -> None:
        self._answers = answers
        self._s3 = s3
        self._refused = refused or {}
        self.calls: list[str] = []

    def client(self, service: str) -> Any:
        if service == "s3" and self._s3 is not None:
            return self._s3
        client = _client(service)
        client.meta.events.unregister("before-call", unique_id=_HANDLER)
        client.meta.events.register("before-call", self._answer, unique_id=_HANDLER)
        return client

    def _answer(self, model: OperationModel, **_: Any) -> tuple[AWSResponse, dict[str, Any]]:
        self.calls.append(model.name)
        if model.name in self._refused:
            code, message = self._refused[model.name]
            return _response(400), {"Error": {"Code": code, "Message": message}}
        answer = copy.deepcopy(self._answers[model.name])
        shape = model.output_shape
        if shape is not None:
            report = ParamValidator().validate(answer, shape)
            assert not report.has_errors(), report.generate_report()
        return _response(200), answer


# Any: boto3's client. It takes a fifth of a second to make.
@functools.cache
def _client(service: str) -> Any:
    # boto3's stubs know clients by literal names only.
    make: Any = boto3.client
    keys = {"aws_access_key_id": "x", "aws_secret_access_key": "x"}
    return make(service, region_name=REGION, **keys)


def _response(status: int) -> AWSResponse:
    # Any: there is no body to read.
    nothing: Any = None
    return AWSResponse("https://localhost", status, {}, nothing)


def read(given: Answers) -> Hosted:
    """Returns the endpoint of the answers in the terms of a config."""
    return hosted(read_endpoint(FakeAws(given).client, NAME, REGION))
