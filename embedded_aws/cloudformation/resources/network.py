"""Security groups and VPC endpoints."""

from typing import Any

from slipway.embedded_aws.cloudformation.resources.api_calls import (
    allowed_members,
    call,
    ignoring,
    removed_tags,
    selected,
    tag_list,
)
from slipway.embedded_aws.cloudformation.resources.base import (
    Attributes,
    Physical,
    Properties,
    ResourceContext,
    ResourceHandler,
    TagStyle,
    changed,
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
    """AWS::EC2::SecurityGroup with its inline rules."""

    type_name = "AWS::EC2::SecurityGroup"
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
    tags = TagStyle.LIST

    def create(self, context: ResourceContext, properties: Properties) -> Physical:
        """Calls CreateSecurityGroup and authorises the rules."""
        client = context.client("ec2")
        request = {
            "GroupName": properties.get("GroupName") or context.physical_name(maximum=255),
            "Description": properties["GroupDescription"],
            "TagSpecifications": _tag_specifications("security-group", properties),
            **selected(properties, "VpcId"),
        }
        group_id: str = call(client, "CreateSecurityGroup", request)["GroupId"]
        context.initiated(group_id)
        self._set_rules(client, group_id, {}, properties)
        return Physical(group_id, {"GroupId": group_id, "Id": group_id})

    def update(
        self, context: ResourceContext, physical_id: str, old: Properties, new: Properties
    ) -> Attributes:
        """Changes rules and tags."""
        client = context.client("ec2")
        self._set_rules(client, physical_id, old, new)
        _update_tags(client, physical_id, old, new)
        return {"GroupId": physical_id, "Id": physical_id}

    def delete(self, context: ResourceContext, physical_id: str, properties: Properties) -> None:
        """Calls DeleteSecurityGroup."""
        with ignoring("InvalidGroup.NotFound"):
            context.client("ec2").delete_security_group(GroupId=physical_id)

    def _set_rules(self, client: Any, group_id: str, old: Properties, new: Properties) -> None:
        """Sets ingress and egress rules; a group without egress rules lets everything out."""
        for direction, default in (("Ingress", []), ("Egress", [_ALL_OUTBOUND])):
            name = f"SecurityGroup{direction}"
            before, after = old.get(name) or default, new.get(name) or default
            for verb, rules, kept in (("Revoke", before, after), ("Authorize", after, before)):
                for rule in rules:
                    if rule not in kept:
                        call(client, f"{verb}{name}", _rule(group_id, rule))


class VpcEndpointHandler(ResourceHandler):
    """AWS::EC2::VPCEndpoint."""

    type_name = "AWS::EC2::VPCEndpoint"
    properties = frozenset({*_ENDPOINT_MEMBERS, "Tags"})
    attributes = frozenset({"Id"})
    tags = TagStyle.LIST

    def create(self, context: ResourceContext, properties: Properties) -> Physical:
        """Calls CreateVpcEndpoint."""
        request = {
            **selected(properties, *_ENDPOINT_MEMBERS),
            "TagSpecifications": _tag_specifications("vpc-endpoint", properties),
        }
        answer = call(context.client("ec2"), "CreateVpcEndpoint", request)
        endpoint_id: str = answer["VpcEndpoint"]["VpcEndpointId"]
        context.initiated(endpoint_id)
        return Physical(endpoint_id, {"Id": endpoint_id})

    def update(
        self, context: ResourceContext, physical_id: str, old: Properties, new: Properties
    ) -> Attributes:
        """Calls ModifyVpcEndpoint with the added and removed ids."""
        client = context.client("ec2")
        request: dict[str, Any] = {"VpcEndpointId": physical_id}
        for singular in ("RouteTableId", "SecurityGroupId", "SubnetId"):
            before, after = old.get(f"{singular}s", []), new.get(f"{singular}s", [])
            request[f"Add{singular}s"] = [i for i in after if i not in before] or None
            request[f"Remove{singular}s"] = [i for i in before if i not in after] or None
        if changed(old, new, "PrivateDnsEnabled"):
            request["PrivateDnsEnabled"] = new.get("PrivateDnsEnabled", False)
        call(client, "ModifyVpcEndpoint", request)
        _update_tags(client, physical_id, old, new)
        return {"Id": physical_id}

    def delete(self, context: ResourceContext, physical_id: str, properties: Properties) -> None:
        """Calls DeleteVpcEndpoints."""
        with ignoring("InvalidVpcEndpointId.NotFound"):
            context.client("ec2").delete_vpc_endpoints(VpcEndpointIds=[physical_id])


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


def _update_tags(client: Any, resource_id: str, old: Properties, new: Properties) -> None:
    if removed := removed_tags(old, new):
        client.delete_tags(Resources=[resource_id], Tags=[{"Key": key} for key in removed])
    if tags := tag_list(new):
        call(client, "CreateTags", {"Resources": [resource_id], "Tags": tags})
