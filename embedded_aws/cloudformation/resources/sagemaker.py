"""Models, endpoint configurations and endpoints.

Their physical ids are ARNs, which have the name in lower case; an attribute has the name itself.
"""

import contextlib
from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

from botocore.exceptions import ClientError

from slipway.embedded_aws.cloudformation.resources.api_calls import (
    call,
    selected,
    update_tags,
)
from slipway.embedded_aws.cloudformation.resources.base import (
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
    update_tags(client, arn, old, new, add="AddTags", remove="DeleteTags")


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


class ServingHandler(ResourceHandler):
    """A resource that serves: its handler waits until it does, and until it is gone.

    Attributes:
        noun: the resource in the API's names, for example `Endpoint`.
        settled: the statuses in which nothing changes by itself.
        created_with: the properties that the Create operation takes beside the name.
    """

    noun: ClassVar[str]
    settled: ClassVar[tuple[str, ...]]
    created_with: ClassVar[tuple[str, ...]]

    def create(self, context: ResourceContext, properties: Properties) -> Physical:
        """Calls the resource's Create operation and waits for InService."""
        name_member, arn_member = f"{self.noun}Name", f"{self.noun}Arn"
        name = properties.get(name_member) or generated_name(context)
        request = {name_member: name, **selected(properties, *self.created_with)}
        arn: str = call(context.client("sagemaker"), f"Create{self.noun}", request)[arn_member]
        # The name is kept for the update and the deletion.
        attributes = {arn_member: arn, name_member: name}
        context.initiated(arn, attributes)
        made = self.wait_until_settled(context, name)
        if made[f"{self.noun}Status"] != "InService":
            raise self.failed(made)
        return Physical(arn, attributes)

    def delete(self, context: ResourceContext, physical_id: str, properties: Properties) -> None:
        """Calls the resource's Delete operation and waits until it is gone."""
        name = context.attributes[f"{self.noun}Name"]
        with ignoring_missing():
            # SageMaker refuses to delete what is being changed.
            if self.wait_until_settled(context, name)[f"{self.noun}Status"] != "Deleting":
                self._call(context, "Delete", name)
            while True:
                self._call(context, "Describe", name)
                context.wait(_POLL_SECONDS)

    def wait_until_settled(self, context: ResourceContext, name: str) -> dict[str, Any]:
        """Returns the description of the resource as soon as nothing changes by itself."""
        while True:
            described: dict[str, Any] = self._call(context, "Describe", name)
            if described[f"{self.noun}Status"] in (*self.settled, "Deleting"):
                return described
            context.wait(_POLL_SECONDS)

    def failed(self, described: dict[str, Any]) -> ResourceFailedError:
        """Returns CloudFormation's error for a resource that did not become usable."""
        reason = described.get("FailureReason") or self.state(described)
        return ResourceFailedError(
            f'Resource handler returned message: "{reason}" (HandlerErrorCode: NotStabilized)'
        )

    @abstractmethod
    def state(self, described: dict[str, Any]) -> str:
        """Returns the reason of a failure for which SageMaker gives none."""

    def _call(self, context: ResourceContext, verb: str, name: str) -> Any:
        request = {f"{self.noun}Name": name}
        return call(context.client("sagemaker"), f"{verb}{self.noun}", request)


class EndpointHandler(ServingHandler):
    """AWS::SageMaker::Endpoint."""

    type_name = "AWS::SageMaker::Endpoint"
    noun = "Endpoint"
    # CloudFormation's own limit on an endpoint's creation (160 minutes) is never reached here:
    # instances are there at once, and SageMaker's timeouts for download and start-up are an hour
    # each at most.
    settled = ("InService", "Failed", "OutOfService", "UpdateRollbackFailed")
    created_with = ("DeploymentConfig", "EndpointConfigName", "Tags")
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

    def update(
        self, context: ResourceContext, physical_id: str, old: Properties, new: Properties
    ) -> Attributes:
        """Calls UpdateEndpoint unless only tags change, and waits for its outcome.

        AWS's schema of the type lets tags be updated, with AddTags and DeleteTags. A handler that
        called UpdateEndpoint for them would be refused each time.
        """
        update_sagemaker_tags(context, physical_id, old, new)
        if not changed(old, new, *self.properties - {"Tags"}):
            return context.attributes
        name, wanted = context.attributes["EndpointName"], new["EndpointConfigName"]
        before = self.wait_until_settled(context, name)
        serves = before["EndpointStatus"] == "InService"
        # SageMaker may have rolled back by itself; then there is nothing left to update. Where the
        # template names no other configuration, SageMaker refuses the one that it serves.
        is_another = changed(old, new, "EndpointConfigName")
        if before["EndpointConfigName"] != wanted or not serves or not is_another:
            request = selected(
                new,
                "DeploymentConfig",
                "EndpointConfigName",
                "ExcludeRetainedVariantProperties",
                "RetainAllVariantProperties",
                "RetainDeploymentConfig",
            )
            request["EndpointName"] = name
            call(context.client("sagemaker"), "UpdateEndpoint", request)
            after = self.wait_until_settled(context, name)
            # CloudFormation does not notice an update that SageMaker undid without a reason:
            # https://github.com/hashicorp/terraform-provider-aws/issues/46663 (read 2026-11-28)
            if after["EndpointStatus"] != "InService" or after.get("FailureReason"):
                raise self.failed(after)
        return context.attributes

    def state(self, described: dict[str, Any]) -> str:
        """Returns the endpoint's status and configuration."""
        return (
            f"Endpoint {described['EndpointName']} is {described['EndpointStatus']} with "
            f"configuration {described['EndpointConfigName']}"
        )
