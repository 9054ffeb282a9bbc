"""Models, endpoint configurations, endpoints and inference components.

Their physical ids are ARNs, which have the name in lower case; an attribute has the name itself.
"""

import contextlib
from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

from botocore.exceptions import ClientError

from slipway.embedded_aws.cloudformation.resources.base import (
    ChangeRefusedError,
    Physical,
    Properties,
    ResourceContext,
    ResourceFailedError,
    ResourceHandler,
    changed,
    input_shape,
    random_suffix,
    selected,
)

# Interval of status checks; real waits take minutes, the waits here take seconds.
_POLL_SECONDS = 0.2
_NAME_LENGTH = 63
# Members of the API that the embedded AWS does not know.
_UNKNOWN = {"CrossRegionTrafficConfig"}


@contextlib.contextmanager
def _ignoring_missing() -> Iterator[None]:
    """Ignores the error that something does not exist.

    SageMaker has no error code for this, only these words.
    """
    try:
        yield
    except ClientError as error:
        message = error.response["Error"].get("Message", "")
        if "Could not find" not in message and "does not exist" not in message:
            raise


def _update_tags(context: ResourceContext, old: Properties, new: Properties) -> None:
    context.update_tags(context.physical_id, old, new, add="AddTags", remove="DeleteTags")


def _generated_name(context: ResourceContext) -> str:
    """Returns LOGICALID-RANDOM: names of SageMaker's resources lack the stack's name."""
    suffix = random_suffix()
    return f"{context.logical_id[: _NAME_LENGTH - len(suffix) - 1]}-{suffix}"


def _members(operation: str) -> list[str]:
    return [name for name in input_shape("sagemaker", operation).members if name not in _UNKNOWN]


class StoredHandler(ResourceHandler):
    """A resource that only stores its properties: anything but its tags replaces it.

    Args:
        noun: the resource in the API's names, for example `Model`.
    """

    service = "sagemaker"

    def __init__(self, noun: str) -> None:
        self.type_name = f"AWS::SageMaker::{noun}"
        self._noun = noun
        self.name_property = self._name = f"{noun}Name"
        self._arn = f"{noun}Arn"
        self.attributes = frozenset({self._name, self._arn})
        self.properties = frozenset(_members(f"Create{noun}"))

    def create(self, context: ResourceContext, properties: Properties) -> Physical:
        name = properties.get(self._name) or _generated_name(context)
        answer = context.call(f"Create{self._noun}", {**properties, self._name: name})
        arn: str = answer[self._arn]
        return Physical(arn, {self._arn: arn, self._name: name})

    def update(self, context: ResourceContext, old: Properties, new: Properties) -> None:
        _update_tags(context, old, new)

    def delete(self, context: ResourceContext, properties: Properties) -> None:
        with _ignoring_missing():
            context.call(f"Delete{self._noun}", selected(context.attributes, self._name))


class ServingHandler(ResourceHandler):
    """A resource that serves: its handler waits until it does, and until it is gone.

    Attributes:
        noun: the resource in the API's names, for example `Endpoint`.
        settled: the statuses in which nothing changes by itself.
    """

    service = "sagemaker"
    noun: ClassVar[str]
    settled: ClassVar[tuple[str, ...]]

    def create(self, context: ResourceContext, properties: Properties) -> Physical:
        """Calls the resource's Create operation and waits for InService."""
        name_member, arn_member = f"{self.noun}Name", f"{self.noun}Arn"
        name = properties.get(name_member) or _generated_name(context)
        operation = f"Create{self.noun}"
        request = {**selected(properties, *_members(operation)), name_member: name}
        arn: str = context.call(operation, request)[arn_member]
        # The name is kept for the update and the deletion.
        attributes = {arn_member: arn, name_member: name}
        context.initiated(arn, attributes)
        made = self.wait_until_settled(context, name)
        if made[f"{self.noun}Status"] != "InService":
            raise self.failed(made)
        return Physical(arn, attributes)

    def delete(self, context: ResourceContext, properties: Properties) -> None:
        """Calls the resource's Delete operation and waits until it is gone."""
        name = context.attributes[f"{self.noun}Name"]
        with _ignoring_missing():
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
        return context.call(f"{verb}{self.noun}", {f"{self.noun}Name": name})


class EndpointHandler(ServingHandler):
    type_name = "AWS::SageMaker::Endpoint"
    noun = "Endpoint"
    # CloudFormation's own limit on an endpoint's creation (160 minutes) is never reached here:
    # instances are there at once, and SageMaker's timeouts for download and start-up are an hour
    # each at most.
    settled = ("InService", "Failed", "OutOfService", "UpdateRollbackFailed")
    properties = frozenset({*_members("CreateEndpoint"), *_members("UpdateEndpoint")})
    name_property = "EndpointName"
    attributes = frozenset({"EndpointArn", "EndpointName"})

    def update(self, context: ResourceContext, old: Properties, new: Properties) -> None:
        """Calls UpdateEndpoint unless only tags change, and waits for its outcome.

        AWS's schema of the type lets tags be updated, with AddTags and DeleteTags. A handler that
        called UpdateEndpoint for them would be refused each time.
        """
        _update_tags(context, old, new)
        if not changed(old, new, *self.properties - {"Tags"}):
            return
        name, wanted = context.attributes["EndpointName"], new["EndpointConfigName"]
        before = self.wait_until_settled(context, name)
        serves = before["EndpointStatus"] == "InService"
        # SageMaker may have rolled back by itself; then there is nothing left to update. Where the
        # template names no other configuration, SageMaker refuses the one that it serves.
        is_another = changed(old, new, "EndpointConfigName")
        if before["EndpointConfigName"] != wanted or not serves or not is_another:
            request = {**selected(new, *_members("UpdateEndpoint")), "EndpointName": name}
            context.call("UpdateEndpoint", request)
            after = self.wait_until_settled(context, name)
            # CloudFormation does not notice an update that SageMaker undid without a reason:
            # https://github.com/hashicorp/terraform-provider-aws/issues/46663 (read 2026-11-28)
            if after["EndpointStatus"] != "InService" or after.get("FailureReason"):
                raise self.failed(after)

    def state(self, described: dict[str, Any]) -> str:
        return (
            f"Endpoint {described['EndpointName']} is {described['EndpointStatus']} with "
            f"configuration {described['EndpointConfigName']}"
        )


class InferenceComponentHandler(ServingHandler):
    type_name = "AWS::SageMaker::InferenceComponent"
    noun = "InferenceComponent"
    settled = ("InService", "Failed")
    properties = frozenset(
        {*_members("CreateInferenceComponent"), *_members("UpdateInferenceComponent")}
    )
    name_property = "InferenceComponentName"
    # AWS's schema has further read-only properties, which change whenever the copies do. The name
    # is none, so Fn::GetAtt cannot ask for it.
    attributes = frozenset({"InferenceComponentArn"})

    def update(self, context: ResourceContext, old: Properties, new: Properties) -> None:
        """Calls UpdateInferenceComponent with the changed properties, and waits for the outcome.

        The number of copies is sent only if the template changed it. Otherwise each update would
        undo what automatic scaling did. AWS does not document what its own handler sends.
        """
        # No operation changes them, and AWS's schema of the type replaces nothing.
        for fixed in ("EndpointName", "InferenceComponentName", "VariantName"):
            if changed(old, new, fixed):
                raise ChangeRefusedError(
                    f"{fixed} of an inference component cannot be changed. Give it another logical "
                    "id and another name, so that it is created anew."
                )
        _update_tags(context, old, new)
        content = ("RuntimeConfig", "Specification", "Specifications")
        request = selected(new, *(each for each in content if changed(old, new, each)))
        # A component that was deleted meanwhile fails the update.
        name = context.attributes["InferenceComponentName"]
        component = self.wait_until_settled(context, name)
        failed = component["InferenceComponentStatus"] != "InService"
        if request:
            request |= selected(new, "DeploymentConfig")
            request["InferenceComponentName"] = name
            context.call("UpdateInferenceComponent", request)
            component = self.wait_until_settled(context, name)
            failed = (
                component["InferenceComponentStatus"] != "InService" or "FailureReason" in component
            )
        if failed:
            raise self.failed(component)

    def state(self, described: dict[str, Any]) -> str:
        name, status = (described[f"InferenceComponent{each}"] for each in ("Name", "Status"))
        return f"Inference component {name} is {status}"
