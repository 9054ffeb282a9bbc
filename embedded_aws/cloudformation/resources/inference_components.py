"""Inference components of SageMaker.

The physical id is the ARN, which has the name in lower case; an attribute has the name itself.
"""

from typing import Any

from embedded_aws.cloudformation.resources.api_calls import call, selected
from embedded_aws.cloudformation.resources.base import (
    Attributes,
    ChangeRefusedError,
    Physical,
    Properties,
    ResourceContext,
    ResourceFailedError,
    ResourceHandler,
    TagStyle,
    changed,
)
from embedded_aws.cloudformation.resources.sagemaker import (
    POLL_SECONDS,
    generated_name,
    ignoring_missing,
    not_stabilized,
    update_sagemaker_tags,
)

_SETTLED = ("InService", "Failed", "Deleting")
# No operation changes them, and AWS's schema of the type replaces nothing.
_FIXED = ("EndpointName", "InferenceComponentName", "VariantName")
_ARN, _NAME = "InferenceComponentArn", "InferenceComponentName"


class InferenceComponentHandler(ResourceHandler):
    """AWS::SageMaker::InferenceComponent: waits until its copies serve."""

    type_name = "AWS::SageMaker::InferenceComponent"
    properties = frozenset(
        {
            *_FIXED,
            "DeploymentConfig",
            "RuntimeConfig",
            "Specification",
            "Specifications",
            "Tags",
        }
    )
    name_property = _NAME
    # AWS's schema has further read-only properties, which change whenever the copies do. The name
    # is none, so Fn::GetAtt cannot ask for it.
    attributes = frozenset({_ARN})
    tags = TagStyle.LIST

    def create(self, context: ResourceContext, properties: Properties) -> Physical:
        """Calls CreateInferenceComponent and waits for InService."""
        client = context.client("sagemaker")
        name = properties.get(_NAME) or generated_name(context)
        request = selected(
            properties,
            "EndpointName",
            "RuntimeConfig",
            "Specification",
            "Specifications",
            "Tags",
            "VariantName",
        )
        arn: str = call(client, "CreateInferenceComponent", {_NAME: name, **request})[_ARN]
        # The name is kept for the update and the deletion.
        attributes = {_ARN: arn, _NAME: name}
        context.initiated(arn, attributes)
        component = self._settled(context, name)
        if component["InferenceComponentStatus"] != "InService":
            raise _failed(component)
        return Physical(arn, attributes)

    def update(
        self, context: ResourceContext, physical_id: str, old: Properties, new: Properties
    ) -> Attributes:
        """Calls UpdateInferenceComponent with the changed properties, and waits for the outcome.

        The number of copies is sent only if the template changed it. Otherwise each update would
        undo what automatic scaling did. AWS does not document what its own handler sends.
        """
        for name in _FIXED:
            if changed(old, new, name):
                raise ChangeRefusedError(
                    f"{name} of an inference component cannot be changed. Give it another logical "
                    "id and another name, so that it is created anew."
                )
        client = context.client("sagemaker")
        update_sagemaker_tags(context, physical_id, old, new)
        name = context.attributes[_NAME]
        names = ("RuntimeConfig", "Specification", "Specifications")
        request = selected(new, *(each for each in names if changed(old, new, each)))
        # A component that was deleted meanwhile fails the update.
        before = self._settled(context, name)
        if request:
            request |= selected(new, "DeploymentConfig")
            call(client, "UpdateInferenceComponent", {_NAME: name, **request})
            after = self._settled(context, name)
            if after["InferenceComponentStatus"] != "InService" or "FailureReason" in after:
                raise _failed(after)
        elif before["InferenceComponentStatus"] != "InService":
            raise _failed(before)
        return context.attributes

    def delete(self, context: ResourceContext, physical_id: str, properties: Properties) -> None:
        """Calls DeleteInferenceComponent and waits until the component is gone."""
        client = context.client("sagemaker")
        name = {_NAME: context.attributes[_NAME]}
        with ignoring_missing():
            # SageMaker refuses to delete a component that is being changed.
            if self._settled(context, name[_NAME])["InferenceComponentStatus"] != "Deleting":
                client.delete_inference_component(**name)
            while True:
                client.describe_inference_component(**name)
                context.wait(POLL_SECONDS)

    def _settled(self, context: ResourceContext, name: str) -> dict[str, Any]:
        client = context.client("sagemaker")
        while True:
            component: dict[str, Any] = client.describe_inference_component(
                InferenceComponentName=name
            )
            if component["InferenceComponentStatus"] in _SETTLED:
                return component
            context.wait(POLL_SECONDS)


def _failed(component: dict[str, Any]) -> ResourceFailedError:
    return not_stabilized(
        component.get("FailureReason")
        or f"Inference component {component[_NAME]} is {component['InferenceComponentStatus']}"
    )
