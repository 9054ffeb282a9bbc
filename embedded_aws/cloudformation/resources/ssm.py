"""Parameters of the parameter store."""

from slipway.embedded_aws.cloudformation.resources.base import (
    Attributes,
    Physical,
    Properties,
    ResourceContext,
    ResourceHandler,
    changed,
    selected,
)

_PUT = ("AllowedPattern", "DataType", "Description", "Policies", "Tier", "Type", "Value")


class ParameterHandler(ResourceHandler):
    type_name = "AWS::SSM::Parameter"
    service = "ssm"
    deletion = ("DeleteParameter", "Name")
    gone = ("ParameterNotFound",)
    properties = frozenset({*_PUT, "Name", "Tags"})
    name_property = "Name"
    attributes = frozenset({"Arn", "Type", "Value"})
    tags_by_key = True

    def create(self, context: ResourceContext, properties: Properties) -> Physical:
        """Calls PutParameter; fails if the name is taken."""
        # Generated names have no leading slash and no hierarchy.
        name = properties.get("Name") or f"CFN-{context.physical_name(maximum=200)}"
        tags = [{"Key": key, "Value": str(v)} for key, v in properties.get("Tags", {}).items()]
        request = {"Name": name, **selected(properties, *_PUT), "Tags": tags or None}
        context.call("PutParameter", request)
        return Physical(name, self._attributes(context, name, properties))

    def update(self, context: ResourceContext, old: Properties, new: Properties) -> Attributes:
        """Puts a new version; tags have their own calls."""
        name = context.physical_id
        if changed(old, new, *_PUT):
            request = {"Name": name, **selected(new, *_PUT), "Overwrite": True}
            context.call("PutParameter", request)
        if changed(old, new, "Tags"):
            tagged = {"ResourceType": "Parameter", "ResourceId": name}
            removed = sorted(set(old.get("Tags", {})) - set(new.get("Tags", {})))
            if removed:
                context.api.remove_tags_from_resource(**tagged, TagKeys=removed)
            tags = [{"Key": key, "Value": str(v)} for key, v in new.get("Tags", {}).items()]
            if tags:
                context.api.add_tags_to_resource(**tagged, Tags=tags)
        return self._attributes(context, name, new)

    def _attributes(
        self, context: ResourceContext, name: str, properties: Properties
    ) -> Attributes:
        arn = context.arn("ssm", f"parameter/{name.lstrip('/')}")
        return {"Arn": arn, **selected(properties, "Type", "Value")}
