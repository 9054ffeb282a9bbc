"""Lambda functions that answer CloudFormation, and the custom resources that they implement.

Only CloudFormation knows these functions: Lambda's API, which is moto's, does not show them.
"""

import uuid
from typing import Any

from slipway.embedded_aws.cloudformation.document import scalar_text
from slipway.embedded_aws.cloudformation.resources.base import (
    Attributes,
    InterruptedOperationError,
    Physical,
    Properties,
    ResourceContext,
    ResourceFailedError,
    ResourceHandler,
)
from slipway.embedded_aws.cloudformation.resources.lambda_runtime import LambdaRuntime

# No server listens there: the function gets a callable that takes its answer.
_RESPONSE_URL = "https://cloudformation-custom-resource-response.invalid/"


class FunctionHandler(ResourceHandler):
    """A function in Python, from a package in S3."""

    type_name = "AWS::Lambda::Function"
    properties = frozenset(
        {
            "Code",
            "Description",
            "Handler",
            "LoggingConfig",
            "Role",
            "Runtime",
            "Tags",
            "Timeout",
        }
    )
    attributes = frozenset({"Arn"})

    def __init__(self, runtime: LambdaRuntime) -> None:
        self._runtime = runtime

    def create(self, context: ResourceContext, properties: Properties) -> Physical:
        name = context.physical_name(maximum=64)
        arn = context.arn("lambda", f"function:{name}")
        self._runtime.deploy(context, arn, properties)
        return Physical(name, {"Arn": arn})

    def update(self, context: ResourceContext, old: Properties, new: Properties) -> None:
        self._runtime.deploy(context, context.attributes["Arn"], new)

    def delete(self, context: ResourceContext, properties: Properties) -> None:
        self._runtime.remove(context.attributes["Arn"])


class CustomResourceHandler(ResourceHandler):
    """A custom resource, which its function creates, changes and deletes."""

    # Any property is allowed: all of them are passed to the function.
    required = frozenset({"ServiceToken"})

    def __init__(self, type_name: str, runtime: LambdaRuntime) -> None:
        self.type_name = type_name
        self._runtime = runtime

    def create(self, context: ResourceContext, properties: Properties) -> Physical:
        answer = self._ask(context, "Create", properties)
        physical_id = answer["PhysicalResourceId"]
        # Reported even if the creation failed, because CloudFormation then has the function delete
        # it.
        context.initiated(physical_id)
        _check(answer)
        return Physical(physical_id, answer.get("Data") or {})

    def update(self, context: ResourceContext, old: Properties, new: Properties) -> Attributes:
        physical_id = context.physical_id
        known = {"PhysicalResourceId": physical_id, "OldResourceProperties": _as_text(old)}
        answer = self._ask(context, "Update", new, **known)
        _check(answer)
        if answer["PhysicalResourceId"] != physical_id:
            raise ResourceFailedError(
                f"The embedded AWS does not replace custom resources: {physical_id} became "
                f"{answer['PhysicalResourceId']}. docs/embedded-aws.md lists what it does."
            )
        return answer.get("Data") or {}

    def delete(self, context: ResourceContext, properties: Properties) -> None:
        known = {"PhysicalResourceId": context.physical_id}
        _check(self._ask(context, "Delete", properties, **known))

    def has_attribute(self, name: str) -> bool:
        # The function's answer may have any attribute.
        return True

    def _ask(
        self, context: ResourceContext, kind: str, properties: Properties, **more: Any
    ) -> dict[str, Any]:
        event = {
            "RequestType": kind,
            "ResponseURL": _RESPONSE_URL,
            "StackId": context.identity.id,
            "RequestId": str(uuid.uuid4()),
            "LogicalResourceId": context.logical_id,
            "ResourceType": self.type_name,
            "ResourceProperties": _as_text(properties),
            **more,
        }
        answer: dict[str, Any] = self._runtime.invoke(context, properties["ServiceToken"], event)
        if context.interrupted.is_set():
            # The function may have caught the interruption as an error of its own.
            raise InterruptedOperationError
        return answer


def _check(answer: dict[str, Any]) -> None:
    if answer["Status"] != "SUCCESS":
        raise ResourceFailedError(
            f"Received response status [FAILED] from custom resource. Message returned: "
            f"{answer.get('Reason', '')} (RequestId: {answer['RequestId']})"
        )


def _as_text(value: Any) -> Any:
    """Returns the value with numbers and booleans as text, as CloudFormation passes them."""
    if isinstance(value, dict):
        return {key: _as_text(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_as_text(item) for item in value]
    return value if value is None else scalar_text(value)
