"""Models, endpoint configurations and endpoints.

Their physical ids are ARNs, which have the name in lower case; an attribute has the name itself.
"""

# ruff: noqa: ARG002  # every handler has the same methods, and few need all their arguments

from __future__ import annotations

from typing import Any

from botocore.exceptions import ClientError

from embedded_aws.cloudformation.resources.api_calls import (
    call,
    removed_tag_keys,
    selected,
    tag_list,
)
from embedded_aws.cloudformation.resources.base import (
    Attributes,
    Physical,
    Properties,
    ResourceContext,
    ResourceFailedError,
    ResourceHandler,
    TagStyle,
    changed,
    random_suffix,
)

# Interval of status checks; real waits take minutes, the waits here take seconds.
_POLL_SECONDS = 0.2
# CloudFormation's own limit on an endpoint's creation (160 minutes) is later than SageMaker's
# container timeout (at most an hour), which ends an endpoint's start before.
_SETTLED = ("InService", "Failed", "OutOfService", "UpdateRollbackFailed")
_NAME_LENGTH = 63


def _is_missing(error: ClientError) -> bool:
    """Returns whether the error says that something does not exist.

    SageMaker has no error code for this, only these words.
    """
    message = error.response["Error"].get("Message", "")
    return "Could not find" in message or "does not exist" in message


def _update_tags(client: Any, arn: str, old: Properties, new: Properties) -> None:
    removed = removed_tag_keys(old, new)
    if removed:
        client.delete_tags(ResourceArn=arn, TagKeys=removed)
    if tag_list(new):
        call(client, "AddTags", {"ResourceArn": arn, "Tags": tag_list(new)})


def _generated_name(context: ResourceContext) -> str:
    """Returns LOGICALID-RANDOM: names of SageMaker's resources lack the stack's name."""
    suffix = random_suffix()
    return f"{context.logical_id[: _NAME_LENGTH - len(suffix) - 1]}-{suffix}"


class ModelHandler(ResourceHandler):
    """AWS::SageMaker::Model."""

    type_name = "AWS::SageMaker::Model"
    properties = frozenset(
        {
            "Containers",
            "EnableNetworkIsolation",
            "ExecutionRoleArn",
            "InferenceExecutionConfig",
            "ModelName",
            "PrimaryContainer",
            "Tags",
            "VpcConfig",
        }
    )
    name_property = "ModelName"
    attributes = frozenset({"ModelArn", "ModelName"})
    tags = TagStyle.LIST

    def create(self, context: ResourceContext, properties: Properties) -> Physical:
        """Calls CreateModel."""
        name = properties.get("ModelName") or _generated_name(context)
        answer = call(context.client("sagemaker"), "CreateModel", {**properties, "ModelName": name})
        arn: str = answer["ModelArn"]
        attributes = {"ModelArn": arn, "ModelName": name}
        context.initiated(arn, attributes)
        return Physical(arn, attributes)

    def update(
        self, context: ResourceContext, physical_id: str, old: Properties, new: Properties
    ) -> Attributes:
        """Changes tags; everything else replaces a model."""
        _update_tags(context.client("sagemaker"), physical_id, old, new)
        return context.attributes

    def delete(self, context: ResourceContext, physical_id: str, properties: Properties) -> None:
        """Calls DeleteModel."""
        try:
            context.client("sagemaker").delete_model(ModelName=context.attributes["ModelName"])
        except ClientError as error:
            if not _is_missing(error):
                raise


class EndpointConfigHandler(ResourceHandler):
    """AWS::SageMaker::EndpointConfig."""

    type_name = "AWS::SageMaker::EndpointConfig"
    properties = frozenset(
        {
            "AsyncInferenceConfig",
            "DataCaptureConfig",
            "EnableNetworkIsolation",
            "EndpointConfigName",
            "ExecutionRoleArn",
            "ExplainerConfig",
            "KmsKeyId",
            "MetricsConfig",
            "ProductionVariants",
            "ShadowProductionVariants",
            "Tags",
            "VpcConfig",
        }
    )
    name_property = "EndpointConfigName"
    attributes = frozenset({"EndpointConfigArn", "EndpointConfigName"})
    tags = TagStyle.LIST

    def create(self, context: ResourceContext, properties: Properties) -> Physical:
        """Calls CreateEndpointConfig."""
        name = properties.get("EndpointConfigName") or _generated_name(context)
        answer = call(
            context.client("sagemaker"),
            "CreateEndpointConfig",
            {**properties, "EndpointConfigName": name},
        )
        arn: str = answer["EndpointConfigArn"]
        attributes = {"EndpointConfigArn": arn, "EndpointConfigName": name}
        context.initiated(arn, attributes)
        return Physical(arn, attributes)

    def update(
        self, context: ResourceContext, physical_id: str, old: Properties, new: Properties
    ) -> Attributes:
        """Changes tags; everything else replaces a configuration."""
        _update_tags(context.client("sagemaker"), physical_id, old, new)
        return context.attributes

    def delete(self, context: ResourceContext, physical_id: str, properties: Properties) -> None:
        """Calls DeleteEndpointConfig."""
        name = context.attributes["EndpointConfigName"]
        try:
            context.client("sagemaker").delete_endpoint_config(EndpointConfigName=name)
        except ClientError as error:
            if not _is_missing(error):
                raise


class EndpointHandler(ResourceHandler):
    """AWS::SageMaker::Endpoint: waits until the endpoint serves."""

    type_name = "AWS::SageMaker::Endpoint"
    properties = frozenset(
        {
            "DeploymentConfig",
            "EndpointConfigName",
            "EndpointName",
            "ExcludeRetainedVariantProperties",
            "RetainAllVariantProperties",
            "RetainDeploymentConfig",
            "Tags",
        }
    )
    name_property = "EndpointName"
    attributes = frozenset({"EndpointArn", "EndpointName"})
    tags = TagStyle.LIST

    def create(self, context: ResourceContext, properties: Properties) -> Physical:
        """Calls CreateEndpoint and waits for InService."""
        client = context.client("sagemaker")
        name = properties.get("EndpointName") or _generated_name(context)
        request = selected(properties, "DeploymentConfig", "EndpointConfigName", "Tags")
        arn: str = call(client, "CreateEndpoint", {"EndpointName": name, **request})["EndpointArn"]
        attributes = {"EndpointArn": arn, "EndpointName": name}
        context.initiated(arn, attributes)
        endpoint = self._settled(context, name)
        if endpoint["EndpointStatus"] != "InService":
            raise ResourceFailedError(_failure(endpoint))
        return Physical(arn, attributes)

    def update(
        self, context: ResourceContext, physical_id: str, old: Properties, new: Properties
    ) -> Attributes:
        """Calls UpdateEndpoint if it would change anything, and waits for its outcome."""
        client = context.client("sagemaker")
        name = context.attributes["EndpointName"]
        if changed(old, new, "Tags"):
            _update_tags(client, physical_id, old, new)
        wanted = new["EndpointConfigName"]
        before = self._settled(context, name)
        serves = before["EndpointStatus"] == "InService"
        # SageMaker may have rolled back by itself; then there is nothing left to update.
        if before["EndpointConfigName"] != wanted or not serves:
            request = selected(
                new,
                "DeploymentConfig",
                "EndpointConfigName",
                "ExcludeRetainedVariantProperties",
                "RetainAllVariantProperties",
                "RetainDeploymentConfig",
            )
            call(client, "UpdateEndpoint", {"EndpointName": name, **request})
            after = self._settled(context, name)
            if after["EndpointStatus"] != "InService" or after["EndpointConfigName"] != wanted:
                raise ResourceFailedError(_failure(after))
        return context.attributes

    def delete(self, context: ResourceContext, physical_id: str, properties: Properties) -> None:
        """Calls DeleteEndpoint and waits until the endpoint is gone."""
        client = context.client("sagemaker")
        name = context.attributes["EndpointName"]
        try:
            # SageMaker refuses to delete an endpoint that is still being created.
            status = self._settled(context, name)["EndpointStatus"]
            if status != "Deleting":
                client.delete_endpoint(EndpointName=name)
            while True:
                client.describe_endpoint(EndpointName=name)
                context.wait(_POLL_SECONDS)
        except ClientError as error:
            if not _is_missing(error):
                raise

    def _settled(self, context: ResourceContext, name: str) -> dict[str, Any]:
        client = context.client("sagemaker")
        while True:
            endpoint: dict[str, Any] = client.describe_endpoint(EndpointName=name)
            if endpoint["EndpointStatus"] in (*_SETTLED, "Deleting"):
                return endpoint
            context.wait(_POLL_SECONDS)


def _failure(endpoint: dict[str, Any]) -> str:
    reason = endpoint.get("FailureReason") or (
        f"Endpoint {endpoint['EndpointName']} is {endpoint['EndpointStatus']} with configuration "
        f"{endpoint['EndpointConfigName']}"
    )
    return f'Resource handler returned message: "{reason}" (HandlerErrorCode: NotStabilized)'
