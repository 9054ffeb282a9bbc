"""Models: CreateModel and the related operations.

A model is checked when it is created, as in SageMaker: its role, the form of the model data's URI,
and that there is data. Settings that the embedded AWS does not emulate are refused here, not at the
first request.
"""

from collections.abc import Mapping
from typing import Any

from botocore.exceptions import ClientError

from slipway.embedded_aws.api import Caller, ValidationError
from slipway.embedded_aws.clients import LoopbackClients
from slipway.embedded_aws.hosting.families import registry_of
from slipway.embedded_aws.hosting.resources.model_source import ModelSource
from slipway.embedded_aws.hosting.resources.records import DeclaredResources
from slipway.embedded_aws.hosting.resources.refusals import refuse
from slipway.embedded_aws.hosting.resources.tags import Tags
from slipway.embedded_aws.iam.permissions import may
from slipway.embedded_aws.iam.s3_access import RoleAccess
from slipway.embedded_aws.iam.trust import require_role

_UNSUPPORTED = {
    "ModelPackageName": "model packages",
    "InferenceSpecificationName": "model packages",
    "AdditionalModelDataSources": "additional model data sources",
    "MultiModelConfig": "multi-model endpoints",
    "ContainerMetricsConfig": "metrics scraped from containers",
}
_UNSUPPORTED_SOURCE = {
    "ManifestS3Uri": "model data manifests",
    "HubAccessConfig": "private model hubs",
}


class Models(DeclaredResources):
    def __init__(self, clients: LoopbackClients, tags: Tags) -> None:
        super().__init__("Model", noun="model", arn_type="model", tags=tags)
        self._clients = clients

    def create(self, caller: Caller, parameters: dict[str, Any]) -> dict[str, Any]:
        self.check(caller, parameters)
        return self.store(caller, {"EnableNetworkIsolation": False, **parameters})

    def check(self, caller: Caller, parameters: Mapping[str, Any]) -> None:
        container = primary_container(parameters)
        self._check_container(caller, container)
        _check_registry(parameters, container)
        if network := parameters.get("VpcConfig"):
            check_network(self._clients.client("ec2", caller.region), network)
        if role := parameters.get("ExecutionRoleArn"):
            require_role(self._clients, caller, role)
            self._check_access(caller, container, role)

    def _check_container(self, caller: Caller, container: Mapping[str, Any]) -> None:
        refuse(container, _UNSUPPORTED)
        if container.get("Mode", "SingleModel") != "SingleModel":
            raise ValidationError("The embedded AWS does not emulate multi-model endpoints (Mode).")
        if not container.get("Image"):
            raise ValidationError("A container definition needs an Image.")
        _check_region(caller, container["Image"])
        described = container.get("ModelDataSource", {}).get("S3DataSource")
        if described is not None:
            if container.get("ModelDataUrl"):
                raise ValidationError("Specify either ModelDataUrl or ModelDataSource, not both.")
            _check_source(described)
        source = ModelSource.of(container)
        if source is not None and not source.exists(self._clients.client("s3", caller.region)):
            raise ValidationError(f"Could not find model data at {source.uri}.")

    def _check_access(self, caller: Caller, container: Mapping[str, Any], role: str) -> None:
        """Refuses model data that the role may not read, in AWS's words.

        https://github.com/philschmid/llm-sagemaker-sample/issues/2 (2023-10-17, read 2026-11-23),
        of CreateModel with uncompressed model data.
        """
        source = ModelSource.of(container)
        if source is None:
            return
        try:
            source.require_access(RoleAccess(self._clients.client("s3", caller.region), role))
        except ClientError as error:
            raise ValidationError(
                f"Could not access model data at {source.uri}. Please ensure that the role "
                f'"{role}" exists and that its trust relationship policy allows the action '
                '"sts:AssumeRole" for the service principal "sagemaker.amazonaws.com". Also ensure '
                'that the role has "s3:GetObject" permissions and that the object is located in '
                f"{caller.region}. If your Model uses multiple models or uncompressed models, "
                'please ensure that the role has "s3:ListBucket" permission.'
            ) from error


def primary_container(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the only container of a model; raises `ValidationError` for none or several."""
    containers = parameters.get("Containers") or []
    primary = parameters.get("PrimaryContainer")
    if primary is not None and containers:
        raise ValidationError("Specify either PrimaryContainer or Containers, not both.")
    if primary is None and not containers:
        raise ValidationError("A model needs a PrimaryContainer.")
    if len(containers) > 1:
        raise ValidationError("The embedded AWS does not emulate several containers in one model.")
    chosen: dict[str, Any] = primary if primary is not None else containers[0]
    return chosen


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


def _check_region(caller: Caller, image: str) -> None:
    """Refuses an image of another region, in AWS's words.

    https://github.com/ed-donner/alex/issues/30 and
    https://github.com/aws/sagemaker-pytorch-inference-toolkit/pull/7, read 2026-11-22.
    """
    registry = registry_of(image)
    if registry is not None and registry[0] != caller.region:
        raise ValidationError(
            f'Region of "{image}" does not match expected region of {caller.region}. Cross region '
            "ECR image pulls are not allowed."
        )


def _check_registry(parameters: Mapping[str, Any], container: Mapping[str, Any]) -> None:
    """Checks an image of a private registry; AWS's words are not public.

    https://docs.aws.amazon.com/sagemaker/latest/dg/your-algorithms-containers-inference-private.html
    (2026-11-29). No image is pulled, and the function is not called.
    """
    config, role = container.get("ImageConfig", {}), parameters.get("ExecutionRoleArn")
    function = config.get("RepositoryAuthConfig", {}).get("RepositoryCredentialsProviderArn")
    is_in_vpc = config.get("RepositoryAccessMode") == "Vpc"
    if is_in_vpc and not parameters.get("VpcConfig"):
        raise ValidationError("RepositoryAccessMode Vpc needs a VpcConfig.")
    if function and not is_in_vpc:
        raise ValidationError("RepositoryAuthConfig needs RepositoryAccessMode Vpc.")
    if function and role and not may(role, "lambda:InvokeFunction", function):
        raise ValidationError(f"{role} may not lambda:InvokeFunction {function}.")


def _check_source(source: Mapping[str, Any]) -> None:
    refuse(source, _UNSUPPORTED_SOURCE)
    uri, data_type = source["S3Uri"], source["S3DataType"]
    if data_type == "S3Prefix" and source["CompressionType"] == "Gzip":
        raise ValidationError("CompressionType Gzip needs S3DataType S3Object: one tar.gz archive.")
    if data_type == "S3Prefix" and not uri.endswith("/"):
        raise ValidationError(
            f'S3Uri "{uri}" of S3DataType S3Prefix must end with a forward slash ("/").'
        )
    if data_type == "S3Object" and uri.endswith("/"):
        raise ValidationError(
            f'S3Uri "{uri}" of S3DataType S3Object must not end with a forward slash ("/").'
        )
