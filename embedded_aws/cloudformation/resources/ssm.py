"""Parameters of the parameter store."""

from slipway.embedded_aws.cloudformation.resources.api_calls import call, ignoring, selected
from slipway.embedded_aws.cloudformation.resources.base import (
    Attributes,
    Physical,
    Properties,
    ResourceContext,
    ResourceHandler,
    TagStyle,
    changed,
)

_PUT = ("AllowedPattern", "DataType", "Description", "Policies", "Tier", "Type", "Value")


class ParameterHandler(ResourceHandler):
    """AWS::SSM::Parameter."""

    type_name = "AWS::SSM::Parameter"
    properties = frozenset({*_PUT, "Name", "Tags"})
    name_property = "Name"
    attributes = frozenset({"Arn", "Type", "Value"})
    tags = TagStyle.MAP

    def create(self, context: ResourceContext, properties: Properties) -> Physical:
        """Calls PutParameter; fails if the name is taken."""
        # Generated names have no leading slash and no hierarchy.
        name = properties.get("Name") or f"CFN-{context.physical_name(maximum=200)}"
        tags = [{"Key": key, "Value": str(v)} for key, v in properties.get("Tags", {}).items()]
        request = {"Name": name, **selected(properties, *_PUT), "Tags": tags or None}
        call(context.client("ssm"), "PutParameter", request)
        return Physical(name, self._attributes(context, name, properties))

    def update(
        self, context: ResourceContext, physical_id: str, old: Properties, new: Properties
    ) -> Attributes:
        """Puts a new version; tags have their own calls."""
        client = context.client("ssm")
        if changed(old, new, *_PUT):
            call(
                client,
                "PutParameter",
                {"Name": physical_id, **selected(new, *_PUT), "Overwrite": True},
            )
        if changed(old, new, "Tags"):
            tagged = {"ResourceType": "Parameter", "ResourceId": physical_id}
            removed = sorted(set(old.get("Tags", {})) - set(new.get("Tags", {})))
            if removed:
                client.remove_tags_from_resource(**tagged, TagKeys=removed)
            tags = [{"Key": key, "Value": str(v)} for key, v in new.get("Tags", {}).items()]
            if tags:
                client.add_tags_to_resource(**tagged, Tags=tags)
        return self._attributes(context, physical_id, new)

    def delete(self, context: ResourceContext, physical_id: str, properties: Properties) -> None:
        """Calls DeleteParameter."""
        with ignoring("ParameterNotFound"):
            context.client("ssm").delete_parameter(Name=physical_id)

    def _attributes(
        self, context: ResourceContext, name: str, properties: Properties
    ) -> Attributes:
        return {
            "Arn": context.arn("ssm", f"parameter/{name.lstrip('/')}"),
            "Type": properties["Type"],
            "Value": properties["Value"],
        }
