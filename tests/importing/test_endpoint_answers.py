"""No setting of an endpoint is dropped: whatever AWS answers changes the config or its lists."""

import copy
import functools
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import botocore.session
import pytest
from botocore.model import ListShape, MapShape, Shape, StringShape, StructureShape

from slipway.errors import UserError
from tests.support.described_endpoints import Answers, answers, component_answers, read

Path = tuple[str, ...]

# Of each operation: the structure with the settings, and what says nothing about what is deployed.
_NO_SETTINGS: dict[str, dict[str, str]] = {
    "DescribeEndpointConfig": {
        "EndpointConfigName": "a name that CloudFormation chooses",
        "EndpointConfigArn": "follows from the name",
        "CreationTime": "a time",
        "ProductionVariants.ModelName": "a name that CloudFormation chooses",
        "ProductionVariants.InitialInstanceCount": "the live count is taken, or scaling sets it",
        "ProductionVariants.InitialVariantWeight": "a single variant gets every request",
        "ProductionVariants.InstancePools.Priority": "the order of one type",
    },
    "DescribeModel": {
        "ModelName": "a name that CloudFormation chooses",
        "ModelArn": "follows from the name",
        "CreationTime": "a time",
        "PrimaryContainer.ModelDataSource.S3DataSource.S3DataType": "the address says it",
        "PrimaryContainer.ModelDataSource.S3DataSource.CompressionType": "the address says it",
        "PrimaryContainer.ModelDataSource.S3DataSource.ETag": "of the files that are published",
        "PrimaryContainer.ModelDataSource.S3DataSource.ManifestEtag": "of the files",
        "PrimaryContainer.ModelDataSource.S3DataSource.ModelAccessConfig.AcceptEula": "a licence",
        "PrimaryContainer.ModelDataUrl": "ModelDataSource is in its place",
        "InferenceExecutionConfig.Mode": "how requests pass several containers",
        "DeploymentRecommendation.RecommendationStatus": "advice of SageMaker's",
    },
    "DescribeInferenceComponent": {
        "InferenceComponentArn": "follows from the name",
        "EndpointName": "the endpoint that is imported",
        "EndpointArn": "follows from the name",
        "VariantName": "there is only one",
        "CreationTime": "a time",
        "LastModifiedTime": "a time",
        "InferenceComponentStatus": "a state",
        "Specification.ModelName": "a name that CloudFormation chooses",
        "Specification.Container.DeployedImage.SpecifiedImage": "the model has it",
        "Specification.Container.DeployedImage.ResolvedImage": "the digest of the model's image",
        "Specification.Container.DeployedImage.ResolutionTime": "a time",
    },
    "DescribeScalableTargets": {
        "ServiceNamespace": "sagemaker",
        "CreationTime": "a time",
        "RoleARN": "the role of the service",
        "ScalableTargetARN": "follows from the resource",
        "PredictedCapacity": "a forecast",
    },
    "DescribeScalingPolicies": {
        "PolicyARN": "follows from the name",
        "PolicyName": "a name that Slipway chooses",
        "ServiceNamespace": "sagemaker",
        "PolicyType": "follows from the structure that is there",
        "CreationTime": "a time",
        "Alarms.AlarmName": "follows from the policy",
        "Alarms.AlarmARN": "follows from the policy",
    },
}
_ROOTS = {
    "DescribeScalableTargets": ("ScalableTargets",),
    "DescribeScalingPolicies": ("ScalingPolicies",),
}
# Not walked: of other endpoints than this one, or the same structure as another that is walked.
_ELSEWHERE = ("Containers", "ShadowProductionVariants", "AdditionalModelDataSources",
              "ResourceId", "ScalableDimension", "NextToken", "DeploymentRecommendation.RealTime",
              "PredictiveScaling", "LastDeploymentConfig", "Specifications",
              # Copies follow the load.
              "RuntimeConfig")  # fmt: skip
# The endpoint whose answers are changed, where it is not the usual one.
_ENDPOINTS = {"DescribeInferenceComponent": component_answers}


def leaves(shape: Shape, path: Path = ()) -> Iterator[tuple[Path, Shape]]:
    """Yields every value of a structure, by the names that lead to it."""
    if isinstance(shape, StructureShape):
        for name, member in shape.members.items():
            yield from leaves(member, (*path, name))
    elif isinstance(shape, ListShape):
        yield from leaves(shape.member, path)
    else:
        yield path, shape


@functools.cache  # botocore reads its model of SageMaker for a tenth of a second
def operation(name: str) -> Shape:
    service = "sagemaker" if "Scal" not in name else "application-autoscaling"
    model = botocore.session.get_session().get_service_model(service)
    shape: Shape = model.operation_model(name).output_shape
    for each in _ROOTS.get(name, ()):
        assert isinstance(shape, StructureShape)
        shape = shape.members[each]
    return shape


def value(shape: Shape, variant: int) -> Any:
    """Returns one of two values of a shape, which has what it requires."""
    if isinstance(shape, StructureShape):
        return {name: value(shape.members[name], 0) for name in shape.required_members}
    if isinstance(shape, MapShape):
        return {"NAME": f"value-{variant}"}
    if isinstance(shape, ListShape):
        return [value(shape.member, variant)]
    least = shape.metadata.get("min", 0)
    if isinstance(shape, StringShape):
        return shape.enum[variant] if shape.enum else f"value-{variant}".rjust(least, "-")
    return {
        "integer": max(61, least) + variant,
        "long": max(61, least) + variant,
        "float": max(0.25, least) + variant,
        "double": 0.25 + variant,
        "boolean": bool(variant),
        "timestamp": datetime(2026, 11, 1 + variant, tzinfo=UTC),
    }[shape.type_name]


def put(content: Any, shape: Shape, path: Path, new: Any) -> None:
    """Sets a value, and makes the structures that lead to it."""
    if isinstance(shape, ListShape):
        assert isinstance(content, list)
        if not content:
            content.append({} if path else new)
        if isinstance(shape.member, StructureShape):
            put(content[0], shape.member, path, new)
        else:
            content[0] = new
        return
    assert isinstance(shape, StructureShape)
    member = shape.members[path[0]]
    if len(path) == 1 and not isinstance(member, ListShape):
        content[path[0]] = new
        return
    empty: Any = [] if isinstance(member, ListShape) else value(member, 0)
    inner = content.setdefault(path[0], empty)
    if isinstance(member, ListShape) and not inner:
        inner.append(value(member.member, 0))
    put(inner, member, path[1:], new)


def outcome(given: Answers) -> str:
    """Returns all that an import says."""
    try:
        found = read(given)
    except UserError as error:
        return str(error)
    return repr((found.call, found.sections, found.found))


def cases() -> Iterator[Any]:
    for name in _NO_SETTINGS:
        shape = operation(name)
        for path, leaf in leaves(shape):
            dotted = ".".join(path)
            if dotted in _NO_SETTINGS[name] or any(each in dotted for each in _ELSEWHERE):
                continue
            if isinstance(leaf, StringShape) and len(leaf.enum) == 1:
                continue  # there is no other value
            yield pytest.param(name, path, leaf, id=f"{name}-{dotted}")


@pytest.mark.parametrize(("name", "path", "leaf"), list(cases()))
def test_another_value_changes_what_the_import_says(name, path, leaf):
    found = []
    for variant in range(2):
        given = copy.deepcopy(_ENDPOINTS.get(name, answers)())
        content: Any = given[name]
        for root in _ROOTS.get(name, ()):
            content = content[root]
        put(content, operation(name), path, value(leaf, variant))
        found.append(outcome(given))
    assert found[0] != found[1]
