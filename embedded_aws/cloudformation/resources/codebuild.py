"""Build projects."""

from typing import Any

from botocore.exceptions import ClientError

from slipway.embedded_aws.cloudformation.resources.base import (
    ChangeRefusedError,
    Physical,
    Properties,
    ResourceContext,
    ResourceFailedError,
    ResourceHandler,
)

# The API's members are the properties in lower camel case, with these exceptions.
_MEMBERS = {"BuildSpec": "buildspec"}
# The key that CodeBuild uses by default; moto knows no other.
_DEFAULT_KEY = "alias/aws/s3"


class ProjectHandler(ResourceHandler):
    type_name = "AWS::CodeBuild::Project"
    service = "codebuild"
    deletion = ("DeleteProject", "name")
    gone = ("ResourceNotFoundException",)
    properties = frozenset(
        {
            "Artifacts",
            "Cache",
            "Description",
            "EncryptionKey",
            "Environment",
            "LogsConfig",
            "Name",
            "QueuedTimeoutInMinutes",
            "ServiceRole",
            "Source",
            "SourceVersion",
            "Tags",
            "TimeoutInMinutes",
            "VpcConfig",
        }
    )
    name_property = "Name"
    attributes = frozenset({"Arn", "Id"})

    def create(self, context: ResourceContext, properties: Properties) -> Physical:
        name = properties.get("Name") or context.physical_name(maximum=140)
        self._create(context, name, properties)
        return Physical(name, {"Arn": context.arn("codebuild", f"project/{name}"), "Id": name})

    def update(self, context: ResourceContext, old: Properties, new: Properties) -> None:
        """Creates the project again under its name, because moto has no UpdateProject."""
        context.api.delete_project(name=context.physical_id)
        try:
            self._create(context, context.physical_id, new)
        except (ClientError, ResourceFailedError) as error:
            self._create(context, context.physical_id, old)
            raise ChangeRefusedError(str(error)) from None

    def _create(self, context: ResourceContext, name: str, properties: Properties) -> None:
        key = properties.get("EncryptionKey", _DEFAULT_KEY)
        if not key.endswith(_DEFAULT_KEY):
            raise ResourceFailedError(
                f"The embedded AWS does not emulate EncryptionKey {key}; only {_DEFAULT_KEY}. "
                "docs/embedded-aws.md lists what it does."
            )
        given = {name: value for name, value in properties.items() if name != "EncryptionKey"}
        request = _api_form(given)
        # moto requires a location even from a source that has none.
        request["source"].setdefault("location", request["source"].get("type"))
        context.call("CreateProject", {**request, "name": name})


def _api_form(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            _MEMBERS.get(key, key[:1].lower() + key[1:]): _api_form(item)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_api_form(item) for item in value]
    return value
