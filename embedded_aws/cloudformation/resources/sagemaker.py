"""Models, endpoint configurations and endpoints.

Their physical ids are ARNs, which have the name in lower case; an attribute has the name itself.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

from botocore.exceptions import ClientError

from embedded_aws.cloudformation.resources.api_calls import (
    call,
    selected,
    update_tags,
)
from embedded_aws.cloudformation.resources.base import (
    Attributes,
    Physical,
    Properties,
    ResourceContext,
    ResourceFailedError,
    ResourceHandler,
    TagStyle,
    random_suffix,
)

# Interval of status checks; real waits take minutes, the waits here take seconds.
POLL_SECONDS = 0.2
# CloudFormation's own limit on an endpoint's creation (160 minutes) is later than SageMaker's
# container timeout (at most an hour), which ends an endpoint's start before.
_SETTLED = ("InService", "Failed", "OutOfService", "UpdateRollbackFailed")
_NAME_LENGTH = 63


@contextlib.contextmanager
def ignoring_missing() -> Iterator[None]:
    """Ignores the error that something does not exist.

    SageMaker has no error code for this, only these words.
    """
    try:
        yield
    except ClientError as error:
        message = error.response["Error"].get("Message", "")
        if "Could not find" not in message and "does not exist" not in message:
            raise


def update_sagemaker_tags(
    context: ResourceContext, arn: str, old: Properties, new: Properties
) -> None:
    """Gives a resource the tags of its new properties."""
    client = context.client("sagemaker")
    update_tags(
        old,
        new,
        remove=lambda keys: client.delete_tags(ResourceArn=arn, TagKeys=keys),
        add=lambda tags: call(client, "AddTags", {"ResourceArn": arn, "Tags": tags}),
    )


def generated_name(context: ResourceContext) -> str:
    """Returns LOGICALID-RANDOM: names of SageMaker's resources lack the stack's name."""
    suffix = random_suffix()
    return f"{context.logical_id[: _NAME_LENGTH - len(suffix) - 1]}-{suffix}"


class StoredHandler(ResourceHandler):
    """A resource that only stores its properties: anything but its tags replaces it.

    Args:
        noun: the resource in the API's names, for example `Model`.
        properties: the properties that the API takes.
    """

    tags = TagStyle.LIST

    def __init__(self, noun: str, properties: frozenset[str]) -> None:
        self.type_name = f"AWS::SageMaker::{noun}"
        self._noun = noun
        self._name, self._arn = f"{noun}Name", f"{noun}Arn"
        self.name_property = self._name
        self.attributes = frozenset({self._name, self._arn})
        self.properties = properties | {self._name, "Tags"}

    def create(self, context: ResourceContext, properties: Properties) -> Physical:
        """Calls the resource's Create operation."""
        name = properties.get(self._name) or generated_name(context)
        request = {**properties, self._name: name}
        answer = call(context.client("sagemaker"), f"Create{self._noun}", request)
        arn: str = answer[self._arn]
        return Physical(arn, {self._arn: arn, self._name: name})

    def update(
        self, context: ResourceContext, physical_id: str, old: Properties, new: Properties
    ) -> Attributes:
        """Changes tags."""
        update_sagemaker_tags(context, physical_id, old, new)
        return context.attributes

    def delete(self, context: ResourceContext, physical_id: str, properties: Properties) -> None:
        """Calls the resource's Delete operation."""
        name = {self._name: context.attributes[self._name]}
        with ignoring_missing():
            call(context.client("sagemaker"), f"Delete{self._noun}", name)


def stored_handlers() -> list[ResourceHandler]:
    """Returns the handlers of AWS::SageMaker::Model and AWS::SageMaker::EndpointConfig."""
    return [
        StoredHandler(
            "Model",
            frozenset(
                {
                    "Containers",
                    "EnableNetworkIsolation",
                    "ExecutionRoleArn",
                    "InferenceExecutionConfig",
                    "PrimaryContainer",
                    "VpcConfig",
                }
            ),
        ),
        StoredHandler(
            "EndpointConfig",
            frozenset(
                {
                    "AsyncInferenceConfig",
                    "DataCaptureConfig",
                    "EnableNetworkIsolation",
                    "ExecutionRoleArn",
                    "ExplainerConfig",
                    "KmsKeyId",
                    "MetricsConfig",
                    "ProductionVariants",
                    "ShadowProductionVariants",
                    "VpcConfig",
                }
            ),
        ),
    ]


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
        name = properties.get("EndpointName") or generated_name(context)
        request = selected(properties, "DeploymentConfig", "EndpointConfigName", "Tags")
        arn: str = call(client, "CreateEndpoint", {"EndpointName": name, **request})["EndpointArn"]
        attributes = {"EndpointArn": arn, "EndpointName": name}
        context.initiated(arn, attributes)
        endpoint = self._settled(context, name)
        if endpoint["EndpointStatus"] != "InService":
            raise _failed(endpoint)
        return Physical(arn, attributes)

    def update(
        self, context: ResourceContext, physical_id: str, old: Properties, new: Properties
    ) -> Attributes:
        """Calls UpdateEndpoint if it would change anything, and waits for its outcome."""
        client = context.client("sagemaker")
        name = context.attributes["EndpointName"]
        update_sagemaker_tags(context, physical_id, old, new)
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
                raise _failed(after)
        return context.attributes

    def delete(self, context: ResourceContext, physical_id: str, properties: Properties) -> None:
        """Calls DeleteEndpoint and waits until the endpoint is gone."""
        client = context.client("sagemaker")
        name = context.attributes["EndpointName"]
        with ignoring_missing():
            # SageMaker refuses to delete an endpoint that is still being created.
            if self._settled(context, name)["EndpointStatus"] != "Deleting":
                client.delete_endpoint(EndpointName=name)
            while True:
                client.describe_endpoint(EndpointName=name)
                context.wait(POLL_SECONDS)

    def _settled(self, context: ResourceContext, name: str) -> dict[str, Any]:
        client = context.client("sagemaker")
        while True:
            endpoint: dict[str, Any] = client.describe_endpoint(EndpointName=name)
            if endpoint["EndpointStatus"] in (*_SETTLED, "Deleting"):
                return endpoint
            context.wait(POLL_SECONDS)


def not_stabilized(reason: str) -> ResourceFailedError:
    """Returns CloudFormation's error for a resource that did not become usable."""
    return ResourceFailedError(
        f'Resource handler returned message: "{reason}" (HandlerErrorCode: NotStabilized)'
    )


def _failed(endpoint: dict[str, Any]) -> ResourceFailedError:
    return not_stabilized(
        endpoint.get("FailureReason")
        or f"Endpoint {endpoint['EndpointName']} is {endpoint['EndpointStatus']} with "
        f"configuration {endpoint['EndpointConfigName']}"
    )
