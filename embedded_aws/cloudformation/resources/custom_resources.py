"""Lambda functions that answer CloudFormation, and the custom resources that they implement.

Only CloudFormation knows these functions: Lambda's API, which is moto's, does not show them.
"""

import uuid
from typing import Any

from botocore.exceptions import ClientError

from slipway.embedded_aws.cloudformation.document import scalar_text
from slipway.embedded_aws.cloudformation.resources.api_calls import allowed_members
from slipway.embedded_aws.cloudformation.resources.base import (
    Attributes,
    InterruptedOperationError,
    Physical,
    Properties,
    ResourceContext,
    ResourceFailedError,
    ResourceHandler,
    TagStyle,
)
from slipway.embedded_aws.cloudformation.resources.lambda_runtime import LambdaRuntime

_NAME_LENGTH = 64
# No server listens there: the function gets a callable that takes its answer.
_RESPONSE_URL = "https://cloudformation-custom-resource-response.invalid/"


class FunctionHandler(ResourceHandler):
    """AWS::Lambda::Function: Python, from a package in S3."""

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
    tags = TagStyle.LIST

    def __init__(self, runtime: LambdaRuntime) -> None:
        self._runtime = runtime

    def create(self, context: ResourceContext, properties: Properties) -> Physical:
        """Loads the code."""
        name = context.physical_name(maximum=_NAME_LENGTH)
        arn = context.arn("lambda", f"function:{name}")
        self._deploy(context, arn, properties)
        return Physical(name, {"Arn": arn})

    def update(
        self, context: ResourceContext, physical_id: str, old: Properties, new: Properties
    ) -> Attributes:
        """Loads the code again."""
        self._deploy(context, context.attributes["Arn"], new)
        return context.attributes

    def delete(self, context: ResourceContext, physical_id: str, properties: Properties) -> None:
        """Removes the function."""
        self._runtime.remove(context.attributes["Arn"])

    def _deploy(self, context: ResourceContext, arn: str, properties: Properties) -> None:
        runtime = str(properties.get("Runtime"))
        if not runtime.startswith("python"):
            raise ResourceFailedError(
                f"The embedded AWS does not run {runtime}, only Python. "
                "docs/embedded-aws.md lists what it does."
            )
        code = properties["Code"]
        allowed_members(code, ("S3Bucket", "S3Key"), "Code")
        logging = properties.get("LoggingConfig", {})
        allowed_members(logging, ("LogFormat", "LogGroup"), "LoggingConfig")
        self._runtime.deploy(
            context,
            arn,
            package=_package(context, code),
            handler=properties["Handler"],
            role_arn=properties["Role"],
            log_group=logging.get("LogGroup"),
        )


class CustomResourceHandler(ResourceHandler):
    """A custom resource, which its function creates, changes and deletes."""

    # Any property is allowed: all of them are passed to the function.
    required = frozenset({"ServiceToken"})

    def __init__(self, type_name: str, runtime: LambdaRuntime) -> None:
        self.type_name = type_name
        self._runtime = runtime

    def create(self, context: ResourceContext, properties: Properties) -> Physical:
        """Calls the function to create the resource."""
        answer = self._ask(context, "Create", properties)
        physical_id = answer["PhysicalResourceId"]
        # Reported even if the creation failed, because CloudFormation then has the function delete
        # it.
        context.initiated(physical_id)
        _check(answer)
        return Physical(physical_id, answer.get("Data") or {})

    def update(
        self, context: ResourceContext, physical_id: str, old: Properties, new: Properties
    ) -> Attributes:
        """Calls the function to change the resource."""
        answer = self._ask(
            context,
            "Update",
            new,
            PhysicalResourceId=physical_id,
            OldResourceProperties=_as_text(old),
        )
        _check(answer)
        if answer["PhysicalResourceId"] != physical_id:
            raise ResourceFailedError(
                f"The embedded AWS does not replace custom resources: {physical_id} became "
                f"{answer['PhysicalResourceId']}. docs/embedded-aws.md lists what it does."
            )
        return answer.get("Data") or {}

    def delete(self, context: ResourceContext, physical_id: str, properties: Properties) -> None:
        """Calls the function to delete the resource."""
        _check(self._ask(context, "Delete", properties, PhysicalResourceId=physical_id))

    def has_attribute(self, name: str) -> bool:
        """Returns True, because the function's answer may have any attribute."""
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


def _package(context: ResourceContext, code: Properties) -> bytes:
    try:
        answer = context.client("s3").get_object(Bucket=code["S3Bucket"], Key=code["S3Key"])
    except ClientError as error:
        details = error.response["Error"]
        raise ResourceFailedError(
            'Resource handler returned message: "Error occurred while GetObject. S3 Error Code: '
            f'{details["Code"]}. S3 Error Message: {details["Message"]}" '
            "(HandlerErrorCode: InvalidRequest)"
        ) from None
    body: bytes = answer["Body"].read()
    return body
