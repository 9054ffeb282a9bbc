"""Inference components of SageMaker.

The physical id is the ARN, which has the name in lower case; an attribute has the name itself.
"""

from typing import Any

from slipway.embedded_aws.cloudformation.resources.api_calls import call, selected
from slipway.embedded_aws.cloudformation.resources.base import (
    Attributes,
    ChangeRefusedError,
    Properties,
    ResourceContext,
    TagStyle,
    changed,
)
from slipway.embedded_aws.cloudformation.resources.sagemaker import (
    ServingHandler,
    update_sagemaker_tags,
)

# No operation changes them, and AWS's schema of the type replaces nothing.
_FIXED = ("EndpointName", "InferenceComponentName", "VariantName")
_CONTENT = ("RuntimeConfig", "Specification", "Specifications")


class InferenceComponentHandler(ServingHandler):
    """AWS::SageMaker::InferenceComponent."""

    type_name = "AWS::SageMaker::InferenceComponent"
    noun = "InferenceComponent"
    settled = ("InService", "Failed")
    created_with = ("EndpointName", *_CONTENT, "Tags", "VariantName")
    properties = frozenset({*_FIXED, *_CONTENT, "DeploymentConfig", "Tags"})
    name_property = "InferenceComponentName"
    # AWS's schema has further read-only properties, which change whenever the copies do. The name
    # is none, so Fn::GetAtt cannot ask for it.
    attributes = frozenset({"InferenceComponentArn"})
    tags = TagStyle.LIST

    def update(
        self, context: ResourceContext, physical_id: str, old: Properties, new: Properties
    ) -> Attributes:
        """Calls UpdateInferenceComponent with the changed properties, and waits for the outcome.

        The number of copies is sent only if the template changed it. Otherwise each update would
        undo what automatic scaling did. AWS does not document what its own handler sends.
        """
        for fixed in _FIXED:
            if changed(old, new, fixed):
                raise ChangeRefusedError(
                    f"{fixed} of an inference component cannot be changed. Give it another logical "
                    "id and another name, so that it is created anew."
                )
        update_sagemaker_tags(context, physical_id, old, new)
        request = selected(new, *(each for each in _CONTENT if changed(old, new, each)))
        # A component that was deleted meanwhile fails the update.
        name = context.attributes["InferenceComponentName"]
        component = self.wait_until_settled(context, name)
        failed = component["InferenceComponentStatus"] != "InService"
        if request:
            request |= selected(new, "DeploymentConfig")
            request["InferenceComponentName"] = name
            call(context.client("sagemaker"), "UpdateInferenceComponent", request)
            component = self.wait_until_settled(context, name)
            failed = (
                component["InferenceComponentStatus"] != "InService" or "FailureReason" in component
            )
        if failed:
            raise self.failed(component)
        return context.attributes

    def state(self, described: dict[str, Any]) -> str:
        """Returns the component's status."""
        name, status = (described[f"InferenceComponent{each}"] for each in ("Name", "Status"))
        return f"Inference component {name} is {status}"
