"""The requests that CloudFormation makes of a template's resources, and what is wrong with them.

For the types that Slipway uses the template's names are the API's, so that botocore's models of the
APIs say what a service would refuse: by botocore's validator (names, types, what is required) and
by the embedded AWS's (patterns, enumerations, lengths, ranges).
"""

import functools
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import botocore.session
from botocore.model import OperationModel
from botocore.validate import ParamValidator

from slipway.embedded_aws.validation import validation_problem

Properties = dict[str, Any]
Call = tuple[str, str, Properties]
Calls = Callable[[str, Properties], Iterator[Call]]

# What stands for a reference, by what is referred to.
_REFERENCES = {
    "AWS::Partition": "aws",
    "AWS::Logs::LogGroup": "name-env-EndpointUpdateFunctionLog-0A1B2C3D4E5F",
    "AWS::CloudWatch::Alarm": "name-env-AlarmsModelLatency-0A1B2C3D4E5F",
    "AWS::IAM::Role": "name-env-ExecutionRole-0A1B2C3D4E5F",
    "AWS::StackId": "arn:aws:cloudformation:us-east-1:123456789012:stack/name-env/0a1b2c3d",
    "AWS::ApplicationAutoScaling::ScalableTarget": (
        "endpoint/NAME/variant/AllTraffic|sagemaker:variant:DesiredInstanceCount|sagemaker"
    ),
    "AWS::ApplicationAutoScaling::ScalingPolicy": (
        "arn:aws:autoscaling:us-east-1:123456789012:scalingPolicy:0a1b2c3d:resource/sagemaker/"
        "endpoint/NAME/variant/AllTraffic:policyName/steps"
    ),
    "ArtifactKeyArn": "arn:aws:kms:us-east-1:123456789012:key/0a1b2c3d-4e5f-6a7b-8c9d-0e1f2a3b4c5d",
    "OwnArtifactKeyArn": (
        "arn:aws:kms:us-east-1:123456789012:key/1b2c3d4e-5f6a-7b8c-9d0e-1f2a3b4c5d6e"
    ),
    "HostExecutionRoleArn": "arn:aws:iam::123456789012:role/host-env-ExecutionRole-0A1B2C3D4E5F",
    "SecurityGroupId": "sg-0a1b2c3d",
    "NotificationTopicArn": "arn:aws:sns:us-east-1:123456789012:foundation-topic",
}
_ATTRIBUTES = {
    (
        "AWS::CloudWatch::Alarm",
        "Arn",
    ): "arn:aws:cloudwatch:us-east-1:123456789012:alarm:name-env-AlarmsModelLatency-0A1B2C3D4E5F",
    ("AWS::IAM::Role", "RoleId"): "AROA0A1B2C3D4E5F6A7B8",
    ("AWS::IAM::Role", "Arn"): "arn:aws:iam::123456789012:role/name-env-ExecutionRole-0A1B2C3D4E5F",
    (
        "AWS::Lambda::Function",
        "Arn",
    ): "arn:aws:lambda:us-east-1:123456789012:function:name-env-0A1B",
    ("AWS::Logs::LogGroup", "Arn"): "arn:aws:logs:us-east-1:123456789012:log-group:name-env-0A1B:*",
    ("AWS::SageMaker::Model", "ModelName"): "HostingModel-0A1B2C3D4E5F",
    ("AWS::SageMaker::EndpointConfig", "EndpointConfigName"): "HostingEndpointConfig-0A1B2C3D4E5F",
    ("AWS::SageMaker::Endpoint", "EndpointName"): "name-env",
    ("AWS::SageMaker::InferenceComponent", "InferenceComponentName"): "name-env",
}
# Of an update alone; CloudFormation keeps them to itself when it creates the endpoint.
_OF_UPDATE = ("ExcludeRetainedVariantProperties", "RetainAllVariantProperties")
# The same of an inference component, and the properties that an update may name beside them.
_OF_COMPONENT_UPDATE = ("DeploymentConfig",)
_UPDATED_WITH_A_COMPONENT = ("InferenceComponentName", "Specification", "RuntimeConfig")
# Limits that stand in the API's documentation and in no shape.
_LARGEST_ENVIRONMENT_BYTES = 32 * 1024
_LONGEST_VARIABLE_BYTES = 1024
_LARGEST_TARGET = 2.0**360
_LONGEST_STACK_DESCRIPTION_BYTES = 1024


@dataclass(frozen=True)
class Request:
    """One call of an API, with the logical id of the resource that makes it."""

    resource: str
    service: str
    operation: str
    parameters: Properties


def requests_of(template: Mapping[str, Any]) -> list[Request]:
    """Lists the requests; a type or a reference that is not known here raises `KeyError`."""
    resources = template["Resources"]
    return [
        Request(name, *call)
        for name, resource in resources.items()
        for call in _CALLS[resource["Type"]](name, _resolved(resource["Properties"], template))
    ]


def complaints_about(template: Mapping[str, Any]) -> list[str]:
    """Lists what a service would refuse, each with its resource and operation."""
    found = [
        f"{request.resource}, {request.operation}: {complaint}"
        for request in requests_of(template)
        for complaint in _complaints(request)
    ]
    size = len(template.get("Description", "").encode())
    if size > _LONGEST_STACK_DESCRIPTION_BYTES:
        found.append(f"the stack's description has {size} bytes")
    return found


@functools.cache
def _operation(service: str, name: str) -> OperationModel:
    return botocore.session.get_session().get_service_model(service).operation_model(name)


def _complaints(request: Request) -> Iterator[str]:
    shape = _operation(request.service, request.operation).input_shape
    report = ParamValidator().validate(request.parameters, shape)
    if report.has_errors():
        yield report.generate_report()
        return  # the other half takes the right types for granted
    if problem := validation_problem(shape, request.parameters):
        yield problem
    documented = _DOCUMENTED.get(request.operation)
    if documented is not None:
        yield from documented(request.parameters)


def _environment(parameters: Properties) -> Iterator[str]:
    variables = parameters["PrimaryContainer"].get("Environment", {})
    sizes = [len(text.encode()) for pair in variables.items() for text in pair]
    if sum(sizes) > _LARGEST_ENVIRONMENT_BYTES:
        yield f"the variables have {sum(sizes)} bytes together"
    if max(sizes, default=0) > _LONGEST_VARIABLE_BYTES:
        yield f"a variable has {max(sizes)} bytes"


def _role_tags(parameters: Properties) -> Iterator[str]:
    keys = [tag["Key"].lower() for tag in parameters.get("Tags", ())]
    if len(set(keys)) < len(keys):
        yield "Duplicate tag keys found: IAM's are not case sensitive"
    if any(key.startswith("aws:") for key in keys):
        yield "a tag key begins with aws:"


def _target_value(parameters: Properties) -> Iterator[str]:
    if parameters["PolicyType"] != "TargetTrackingScaling":
        return
    value = parameters["TargetTrackingScalingPolicyConfiguration"]["TargetValue"]
    if not 1 / _LARGEST_TARGET <= abs(value) <= _LARGEST_TARGET:
        yield f"the target value {value} is too small or too large"


_DOCUMENTED: Mapping[str, Callable[[Properties], Iterator[str]]] = {
    "CreateModel": _environment,
    "CreateRole": _role_tags,
    "PutScalingPolicy": _target_value,
}


def _resolved(value: Any, template: Mapping[str, Any]) -> Any:
    """Puts plausible texts in the place of references."""
    if isinstance(value, list):
        return [_resolved(item, template) for item in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"Ref"}:
        target = template["Resources"].get(value["Ref"], {})
        return _REFERENCES[target.get("Type", value["Ref"])]
    if set(value) == {"Fn::GetAtt"}:
        name, attribute = value["Fn::GetAtt"]
        return _ATTRIBUTES[template["Resources"][name]["Type"], attribute]
    if set(value) == {"Fn::Join"}:
        separator, parts = value["Fn::Join"]
        return separator.join(_resolved(parts, template))
    return {key: _resolved(item, template) for key, item in value.items()}


def _named(
    service: str, operation: str, member: str
) -> Callable[[str, Properties], Iterator[Call]]:
    def calls(name: str, properties: Properties) -> Iterator[Call]:
        yield service, operation, {member: name, **properties}

    return calls


def _endpoint(_: str, properties: Properties) -> Iterator[Call]:
    created = {key: value for key, value in properties.items() if key not in _OF_UPDATE}
    yield "sagemaker", "CreateEndpoint", created
    updated = {key: value for key, value in properties.items() if key != "Tags"}
    yield "sagemaker", "UpdateEndpoint", updated


def _inference_component(_: str, properties: Properties) -> Iterator[Call]:
    created = {key: value for key, value in properties.items() if key not in _OF_COMPONENT_UPDATE}
    yield "sagemaker", "CreateInferenceComponent", created
    named = (*_UPDATED_WITH_A_COMPONENT, *_OF_COMPONENT_UPDATE)
    updated = {key: value for key, value in properties.items() if key in named}
    yield "sagemaker", "UpdateInferenceComponent", updated


def _scalable_target(_: str, properties: Properties) -> Iterator[Call]:
    tags = {tag["Key"]: tag["Value"] for tag in properties.pop("Tags", ())}
    actions = properties.pop("ScheduledActions", ())
    yield "application-autoscaling", "RegisterScalableTarget", {**properties, "Tags": tags}
    names = ("ServiceNamespace", "ScalableDimension", "ResourceId")
    for action in actions:
        target = {name: properties[name] for name in names}
        yield "application-autoscaling", "PutScheduledAction", {**target, **action}


def _scaling_policy(_: str, properties: Properties) -> Iterator[Call]:
    resource_id, dimension, namespace = properties.pop("ScalingTargetId").split("|")
    target = {
        "ServiceNamespace": namespace, "ScalableDimension": dimension, "ResourceId": resource_id,
    }  # fmt: skip
    yield "application-autoscaling", "PutScalingPolicy", {**properties, **target}


def _role(name: str, properties: Properties) -> Iterator[Call]:
    policies = properties.pop("Policies")
    trust = json.dumps(properties.pop("AssumeRolePolicyDocument"))
    role = {"RoleName": name[:64], "AssumeRolePolicyDocument": trust}
    yield "iam", "CreateRole", {**role, **properties}
    for policy in policies:
        document = json.dumps(policy.pop("PolicyDocument"), separators=(",", ":"))
        yield "iam", "PutRolePolicy", {
            "RoleName": name[:64], "PolicyDocument": document, **policy,
        }  # fmt: skip


def _policy(_: str, properties: Properties) -> Iterator[Call]:
    document = json.dumps(properties["PolicyDocument"], separators=(",", ":"))
    for role in properties["Roles"]:
        yield "iam", "PutRolePolicy", {
            "RoleName": role, "PolicyName": properties["PolicyName"], "PolicyDocument": document,
        }  # fmt: skip


def _log_group(logical_id: str, properties: Properties) -> Iterator[Call]:
    # CloudFormation names a group that has no name.
    name = properties.pop("LogGroupName", f"name-env-{logical_id}-0A1B2C3D4E5F")
    days = properties.pop("RetentionInDays")
    if "KmsKeyId" in properties:
        properties["kmsKeyId"] = properties.pop("KmsKeyId")
    tags = {tag["Key"]: tag["Value"] for tag in properties.pop("Tags", ())}
    yield "logs", "CreateLogGroup", {"logGroupName": name, "tags": tags, **properties}
    yield "logs", "PutRetentionPolicy", {"logGroupName": name, "retentionInDays": days}


def _function(name: str, properties: Properties) -> Iterator[Call]:
    tags = {tag["Key"]: tag["Value"] for tag in properties.pop("Tags", ())}
    yield "lambda", "CreateFunction", {"FunctionName": name[:64], **properties, "Tags": tags}


def _parameter(_: str, properties: Properties) -> Iterator[Call]:
    tags = [{"Key": key, "Value": value} for key, value in properties.pop("Tags", {}).items()]
    yield "ssm", "PutParameter", {**properties, "Tags": tags}


def _custom_resource(_: str, _properties: Properties) -> Iterator[Call]:
    """Its function takes any properties."""
    yield from ()


_CALLS: Mapping[str, Calls] = {
    "AWS::ApplicationAutoScaling::ScalableTarget": _scalable_target,
    "AWS::ApplicationAutoScaling::ScalingPolicy": _scaling_policy,
    "AWS::CloudWatch::Alarm": _named("cloudwatch", "PutMetricAlarm", "AlarmName"),
    "AWS::CloudWatch::Dashboard": _named("cloudwatch", "PutDashboard", "DashboardName"),
    "AWS::IAM::Policy": _policy,
    "AWS::IAM::Role": _role,
    "AWS::Lambda::Function": _function,
    "AWS::Logs::LogGroup": _log_group,
    "AWS::SageMaker::Endpoint": _endpoint,
    "AWS::SageMaker::EndpointConfig": _named(
        "sagemaker", "CreateEndpointConfig", "EndpointConfigName"
    ),
    "AWS::SageMaker::InferenceComponent": _inference_component,
    "AWS::SageMaker::Model": _named("sagemaker", "CreateModel", "ModelName"),
    "AWS::SSM::Parameter": _parameter,
    "Custom::SlipwayScaling": _custom_resource,
}
