"""The checks of CreateTrainingJob: SageMaker's own, and settings without effect here."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from botocore.exceptions import ClientError

from slipway.embedded_aws.api import Caller, ValidationError
from slipway.embedded_aws.clients import LoopbackClients
from slipway.embedded_aws.hosting.families import find_program, registry_of
from slipway.embedded_aws.hosting.families.program import CannotLaunchError, ContainerProgram
from slipway.embedded_aws.hosting.resources.refusals import refuse
from slipway.embedded_aws.iam.s3_access import RoleAccess
from slipway.embedded_aws.iam.trust import require_role

_PAGE = "services"
_UNSUPPORTED = {
    "VpcConfig": "networks of your own",
    "EnableManagedSpotTraining": "spot capacity",
    "CheckpointConfig": "checkpoints",
    "DebugHookConfig": "the debugger",
    "DebugRuleConfigurations": "the debugger",
    "TensorBoardOutputConfig": "TensorBoard",
    "ExperimentConfig": "experiments",
    "ProfilerConfig": "the profiler",
    "ProfilerRuleConfigurations": "the profiler",
    "RetryStrategy": "retries",
    "RemoteDebugConfig": "remote debugging",
    "SessionChainingConfig": "session chaining",
    "ServerlessJobConfig": "serverless jobs",
    "MlflowConfig": "MLflow",
    "ModelPackageConfig": "model packages",
}
_UNSUPPORTED_ALGORITHM = {
    "AlgorithmName": "algorithms of the Marketplace",
    "MetricDefinitions": "metrics read from logs",
    "ContainerEntrypoint": "another entry point than the image's",
    "TrainingImageConfig": "registries outside ECR",
}
_UNSUPPORTED_RESOURCES = {
    "InstanceGroups": "instance groups",
    "KeepAlivePeriodInSeconds": "warm pools",
    "TrainingPlanArn": "training plans",
    "InstancePreferences": "instance preferences",
}
_UNSUPPORTED_SOURCE = {"AttributeNames": "augmented manifests", "HubAccessConfig": "private hubs"}


def checked_program(
    caller: Caller,
    parameters: Mapping[str, Any],
    clients: LoopbackClients,
    programs: Mapping[str, ContainerProgram],
) -> ContainerProgram:
    refuse(parameters, _UNSUPPORTED, page=_PAGE)
    for member in ("AlgorithmSpecification", "ResourceConfig", "StoppingCondition"):
        if not parameters.get(member):
            raise ValidationError(f"A training job needs a {member}.")
    _check_resources(parameters["ResourceConfig"])
    program = _program(caller, parameters["AlgorithmSpecification"], programs)
    source = f"training-job/{parameters['TrainingJobName']}"
    require_role(clients, caller, parameters["RoleArn"], source)
    names = [channel["ChannelName"] for channel in parameters.get("InputDataConfig", ())]
    if len(set(names)) != len(names):
        raise ValidationError("The channels of InputDataConfig need different names.")
    for channel in parameters.get("InputDataConfig", ()):
        _check_channel(caller, channel, parameters["RoleArn"], clients)
    _check_output(parameters["OutputDataConfig"])
    return program


def channel_place(channel: Mapping[str, Any]) -> tuple[str, str]:
    """Returns bucket and key prefix of a channel that was checked."""
    parts = urlsplit(channel["DataSource"]["S3DataSource"]["S3Uri"])
    return parts.netloc, parts.path.removeprefix("/")


def _check_resources(resources: Mapping[str, Any]) -> None:
    refuse(resources, _UNSUPPORTED_RESOURCES, page=_PAGE)
    for member in ("InstanceType", "InstanceCount", "VolumeSizeInGB"):
        if not resources.get(member):
            raise ValidationError(f"ResourceConfig needs {member}.")
    if resources["InstanceCount"] > 1:
        raise ValidationError("The embedded AWS does not emulate training on several instances.")


def _check_region(caller: Caller, image: str) -> None:
    # In AWS's words (read 2026-11-22): https://github.com/aws-samples/mlops-amazon-sagemaker/issues/9
    registry = registry_of(image)
    if registry is None or registry[0] == caller.region:
        return
    region, suffix = registry
    own = "amazonaws.com.cn" if caller.region.startswith("cn-") else "amazonaws.com"
    raise ValidationError(
        f"Invalid DNS suffix '{suffix}' for region '{region}' in training image. Please provide "
        f"the valid <region>.<dns-suffix>: '{caller.region}.{own}'"
    )


def _program(
    caller: Caller, algorithm: Mapping[str, Any], programs: Mapping[str, ContainerProgram]
) -> ContainerProgram:
    refuse(algorithm, _UNSUPPORTED_ALGORITHM, page=_PAGE)
    image = algorithm.get("TrainingImage")
    if not image:
        raise ValidationError("AlgorithmSpecification needs a TrainingImage.")
    _check_region(caller, image)
    mode = algorithm["TrainingInputMode"]
    if mode != "File":
        raise ValidationError(f"The embedded AWS does not emulate TrainingInputMode {mode}.")
    try:
        program = find_program(programs, image)
    except CannotLaunchError as error:
        raise ValidationError(str(error)) from error
    if not program.entrypoint:
        raise ValidationError(f"No training job runs in image {image}.")
    return program


def _check_channel(
    caller: Caller, channel: Mapping[str, Any], role: str, clients: LoopbackClients
) -> None:
    name = channel["ChannelName"]
    source = channel["DataSource"].get("S3DataSource")
    if source is None:
        raise ValidationError(
            f"The embedded AWS reads channels from S3 only; {name} has another source."
        )
    refuse(source, _UNSUPPORTED_SOURCE, page=_PAGE)
    if source["S3DataType"] != "S3Prefix":
        raise ValidationError(
            f"The embedded AWS does not emulate S3DataType {source['S3DataType']}."
        )
    if channel.get("InputMode", "File") != "File":
        raise ValidationError(
            f"The embedded AWS does not emulate InputMode {channel['InputMode']}."
        )
    if channel.get("CompressionType", "None") != "None":
        raise ValidationError("The embedded AWS does not emulate compressed channels.")
    uri = source["S3Uri"]
    if not uri.startswith("s3://") or not uri.endswith("/"):
        raise ValidationError(
            f'The embedded AWS wants S3Uri "{uri}" as s3://BUCKET/PREFIX/, with its final slash.'
        )
    bucket, prefix = channel_place(channel)
    access = RoleAccess(clients.client("s3", caller.region), role)
    try:
        found = next(access.keys(bucket, prefix), None)
    except ClientError:
        found = None
    if found is None:
        raise ValidationError(
            f'No S3 objects found under S3 URL "{uri}" given in input data source. Please ensure '
            f"that the bucket exists in the selected region ({caller.region}), that objects exist "
            f'under that S3 prefix, and that the role "{role}" has "s3:ListBucket" permissions on '
            f'bucket "{bucket}".'
        )


def _check_output(output: Mapping[str, Any]) -> None:
    uri = output["S3OutputPath"]
    if not uri.startswith("s3://"):
        raise ValidationError(f'The embedded AWS wants S3OutputPath "{uri}" as s3://BUCKET/.')
