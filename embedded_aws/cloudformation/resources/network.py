"""Security groups and VPC endpoints."""

from typing import Any

from slipway.embedded_aws.cloudformation.resources.base import (
    Physical,
    Properties,
    ResourceContext,
    ResourceHandler,
    allowed_members,
    changed,
    removed_tags,
    selected,
    tag_list,
)

# Template member -> the API's list and member.
_PEERS = {
    "CidrIp": ("IpRanges", "CidrIp"),
    "SourceSecurityGroupId": ("UserIdGroupPairs", "GroupId"),
}
# The rule that EC2 gives a group without egress rules.
_ALL_OUTBOUND = {"IpProtocol": "-1", "CidrIp": "0.0.0.0/0"}
_ENDPOINT_MEMBERS = (
    "PrivateDnsEnabled",
    "RouteTableIds",
    "SecurityGroupIds",
    "ServiceName",
    "SubnetIds",
    "VpcEndpointType",
    "VpcId",
)


class SecurityGroupHandler(ResourceHandler):
    """A security group with its inline rules."""

    type_name = "AWS::EC2::SecurityGroup"
    service = "ec2"
    deletion = ("DeleteSecurityGroup", "GroupId")
    gone = ("InvalidGroup.NotFound",)
    properties = frozenset(
        {
            "GroupDescription",
            "GroupName",
            "SecurityGroupEgress",
            "SecurityGroupIngress",
            "Tags",
            "VpcId",
        }
    )
    name_property = "GroupName"
    attributes = frozenset({"GroupId", "Id"})

    def create(self, context: ResourceContext, properties: Properties) -> Physical:
        request = {
            "GroupName": properties.get("GroupName") or context.physical_name(maximum=255),
            "Description": properties["GroupDescription"],
            "TagSpecifications": _tag_specifications("security-group", properties),
            **selected(properties, "VpcId"),
        }
        group_id: str = context.call("CreateSecurityGroup", request)["GroupId"]
        context.initiated(group_id)
        self._set_rules(context, group_id, {}, properties)
        return Physical(group_id, {"GroupId": group_id, "Id": group_id})

    def update(self, context: ResourceContext, old: Properties, new: Properties) -> None:
        self._set_rules(context, context.physical_id, old, new)
        _update_tags(context, old, new)

    def _set_rules(
        self, context: ResourceContext, group_id: str, old: Properties, new: Properties
    ) -> None:
        """Sets ingress and egress rules; a group without egress rules lets everything out."""
        for direction, default in (("Ingress", []), ("Egress", [_ALL_OUTBOUND])):
            name = f"SecurityGroup{direction}"
            before, after = old.get(name) or default, new.get(name) or default
            for verb, rules, kept in (("Revoke", before, after), ("Authorize", after, before)):
                for rule in rules:
                    if rule not in kept:
                        context.call(f"{verb}{name}", _rule(group_id, rule))


class VpcEndpointHandler(ResourceHandler):
    type_name = "AWS::EC2::VPCEndpoint"
    service = "ec2"
    deletion = ("DeleteVpcEndpoints", "VpcEndpointIds")
    gone = ("InvalidVpcEndpointId.NotFound",)
    properties = frozenset({*_ENDPOINT_MEMBERS, "Tags"})
    attributes = frozenset({"Id"})

    def create(self, context: ResourceContext, properties: Properties) -> Physical:
        request = {
            **selected(properties, *_ENDPOINT_MEMBERS),
            "TagSpecifications": _tag_specifications("vpc-endpoint", properties),
        }
        answer = context.call("CreateVpcEndpoint", request)
        endpoint_id: str = answer["VpcEndpoint"]["VpcEndpointId"]
        return Physical(endpoint_id, {"Id": endpoint_id})

    def update(self, context: ResourceContext, old: Properties, new: Properties) -> None:
        """Calls ModifyVpcEndpoint with the added and removed ids."""
        request: dict[str, Any] = {"VpcEndpointId": context.physical_id}
        for singular in ("RouteTableId", "SecurityGroupId", "SubnetId"):
            before, after = old.get(f"{singular}s", []), new.get(f"{singular}s", [])
            request[f"Add{singular}s"] = [i for i in after if i not in before] or None
            request[f"Remove{singular}s"] = [i for i in before if i not in after] or None
        if changed(old, new, "PrivateDnsEnabled"):
            request["PrivateDnsEnabled"] = new.get("PrivateDnsEnabled", False)
        context.call("ModifyVpcEndpoint", request)
        _update_tags(context, old, new)


def _rule(group_id: str, rule: dict[str, Any]) -> dict[str, Any]:
    allowed_members(
        rule, ("Description", "FromPort", "IpProtocol", "ToPort", *_PEERS), "SecurityGroup rule"
    )
    permission: dict[str, Any] = selected(rule, "FromPort", "IpProtocol", "ToPort")
    for name, (members, member) in _PEERS.items():
        if name in rule:
            permission[members] = [{member: rule[name], **selected(rule, "Description")}]
    return {"GroupId": group_id, "IpPermissions": [permission]}


def _tag_specifications(kind: str, properties: Properties) -> list[dict[str, Any]] | None:
    tags = tag_list(properties)
    return [{"ResourceType": kind, "Tags": tags}] if tags else None


def _update_tags(context: ResourceContext, old: Properties, new: Properties) -> None:
    resources = [context.physical_id]
    if removed := removed_tags(old, new):
        context.api.delete_tags(Resources=resources, Tags=[{"Key": key} for key in removed])
    if tags := tag_list(new):
        context.call("CreateTags", {"Resources": resources, "Tags": tags})
