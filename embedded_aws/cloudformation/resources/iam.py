"""Roles and policies."""

from typing import Any

from slipway.embedded_aws.cloudformation.resources.api_calls import (
    allowed_members,
    call,
    document_text,
    ignoring,
    selected,
    tag_list,
    update_tags,
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

_NAME_LENGTH = 64
_MISSING = "NoSuchEntity"
_DEFAULT_SESSION_SECONDS = 3600


class RoleHandler(ResourceHandler):
    """AWS::IAM::Role."""

    type_name = "AWS::IAM::Role"
    properties = frozenset(
        {
            "AssumeRolePolicyDocument",
            "Description",
            "ManagedPolicyArns",
            "MaxSessionDuration",
            "Path",
            "PermissionsBoundary",
            "Policies",
            "RoleName",
            "Tags",
        }
    )
    name_property = "RoleName"
    attributes = frozenset({"Arn", "RoleId"})
    tags = TagStyle.LIST

    def create(self, context: ResourceContext, properties: Properties) -> Physical:
        """Calls CreateRole and adds its policies."""
        client = context.client("iam")
        name = properties.get("RoleName") or context.physical_name(maximum=_NAME_LENGTH)
        fields = ("Description", "MaxSessionDuration", "Path", "PermissionsBoundary")
        request = {
            "RoleName": name,
            "AssumeRolePolicyDocument": document_text(properties["AssumeRolePolicyDocument"]),
            **selected(properties, *fields),
            "Tags": tag_list(properties) or None,
        }
        role = call(client, "CreateRole", request)["Role"]
        context.initiated(name)
        self._set_policies(client, name, {}, properties)
        return Physical(name, {"Arn": role["Arn"], "RoleId": role["RoleId"]})

    def update(
        self, context: ResourceContext, physical_id: str, old: Properties, new: Properties
    ) -> Attributes:
        """Changes everything but name and path."""
        client = context.client("iam")
        if changed(old, new, "AssumeRolePolicyDocument"):
            client.update_assume_role_policy(
                RoleName=physical_id, PolicyDocument=document_text(new["AssumeRolePolicyDocument"])
            )
        if changed(old, new, "Description", "MaxSessionDuration"):
            client.update_role(
                RoleName=physical_id,
                Description=new.get("Description", ""),
                MaxSessionDuration=int(new.get("MaxSessionDuration", _DEFAULT_SESSION_SECONDS)),
            )
        if changed(old, new, "PermissionsBoundary"):
            if "PermissionsBoundary" in new:
                client.put_role_permissions_boundary(
                    RoleName=physical_id, PermissionsBoundary=new["PermissionsBoundary"]
                )
            else:
                client.delete_role_permissions_boundary(RoleName=physical_id)
        self._set_policies(client, physical_id, old, new)
        update_tags(client, physical_id, old, new, add="TagRole", remove="UntagRole")
        role = client.get_role(RoleName=physical_id)["Role"]
        return {"Arn": role["Arn"], "RoleId": role["RoleId"]}

    def delete(self, context: ResourceContext, physical_id: str, properties: Properties) -> None:
        """Removes the role's own policies, then calls DeleteRole; other policies make that fail."""
        client = context.client("iam")
        with ignoring(_MISSING):
            self._set_policies(client, physical_id, properties, {})
        with ignoring(_MISSING):
            client.delete_role(RoleName=physical_id)

    def _set_policies(self, client: Any, name: str, old: Properties, new: Properties) -> None:
        before, after = set(old.get("ManagedPolicyArns", [])), new.get("ManagedPolicyArns", [])
        for arn in after:
            if arn not in before:
                client.attach_role_policy(RoleName=name, PolicyArn=arn)
        for arn in before - set(after):
            with ignoring(_MISSING):
                client.detach_role_policy(RoleName=name, PolicyArn=arn)
        kept = set()
        for policy in new.get("Policies", []):
            allowed_members(policy, ("PolicyDocument", "PolicyName"), "Policies")
            kept.add(policy["PolicyName"])
            client.put_role_policy(
                RoleName=name,
                PolicyName=policy["PolicyName"],
                PolicyDocument=document_text(policy["PolicyDocument"]),
            )
        for policy in old.get("Policies", []):
            if policy["PolicyName"] not in kept:
                with ignoring(_MISSING):
                    client.delete_role_policy(RoleName=name, PolicyName=policy["PolicyName"])


class InlinePolicyHandler(ResourceHandler):
    """AWS::IAM::Policy: one inline policy of several roles, users and groups."""

    type_name = "AWS::IAM::Policy"
    properties = frozenset({"Groups", "PolicyDocument", "PolicyName", "Roles", "Users"})
    attributes = frozenset({"Id"})

    def create(self, context: ResourceContext, properties: Properties) -> Physical:
        """Adds the policy to every principal."""
        physical_id = context.physical_name(maximum=_NAME_LENGTH)
        self._set(context.client("iam"), {}, properties)
        return Physical(physical_id, {"Id": physical_id})

    def update(
        self, context: ResourceContext, physical_id: str, old: Properties, new: Properties
    ) -> Attributes:
        """Writes the policy again, and removes it from principals that left the lists."""
        self._set(context.client("iam"), old, new)
        return {"Id": physical_id}

    def delete(self, context: ResourceContext, physical_id: str, properties: Properties) -> None:
        """Removes the policy from every principal."""
        self._set(context.client("iam"), properties, {})

    def _set(self, client: Any, old: Properties, new: Properties) -> None:
        before = {(*principal, old["PolicyName"]) for principal in _principals(old)}
        after = {(*principal, new["PolicyName"]) for principal in _principals(new)}
        for kind, principal, policy in sorted(after):
            document = document_text(new["PolicyDocument"])
            request = {f"{kind}Name": principal, "PolicyName": policy, "PolicyDocument": document}
            call(client, f"Put{kind}Policy", request)
        for kind, principal, policy in sorted(before - after):
            with ignoring(_MISSING):
                request = {f"{kind}Name": principal, "PolicyName": policy}
                call(client, f"Delete{kind}Policy", request)


class ManagedPolicyHandler(ResourceHandler):
    """AWS::IAM::ManagedPolicy."""

    type_name = "AWS::IAM::ManagedPolicy"
    properties = frozenset(
        {
            "Description",
            "Groups",
            "ManagedPolicyName",
            "Path",
            "PolicyDocument",
            "Roles",
            "Users",
        }
    )
    name_property = "ManagedPolicyName"
    attributes = frozenset({"PolicyArn", "PolicyId"})

    def create(self, context: ResourceContext, properties: Properties) -> Physical:
        """Calls CreatePolicy and attaches it."""
        client = context.client("iam")
        name = properties.get("ManagedPolicyName") or context.physical_name(maximum=128)
        request = {
            "PolicyName": name,
            "PolicyDocument": document_text(properties["PolicyDocument"]),
            **selected(properties, "Description", "Path"),
        }
        policy = call(client, "CreatePolicy", request)["Policy"]
        context.initiated(policy["Arn"])
        self._attach(context, policy["Arn"], {}, properties)
        return Physical(policy["Arn"], {"PolicyArn": policy["Arn"], "PolicyId": policy["PolicyId"]})

    def update(
        self, context: ResourceContext, physical_id: str, old: Properties, new: Properties
    ) -> Attributes:
        """Creates a new default version and deletes the others, as CloudFormation does."""
        client = context.client("iam")
        if changed(old, new, "PolicyDocument"):
            document = document_text(new["PolicyDocument"])
            self._drop_old_versions(client, physical_id)
            client.create_policy_version(
                PolicyArn=physical_id, PolicyDocument=document, SetAsDefault=True
            )
        self._attach(context, physical_id, old, new)
        policy = client.get_policy(PolicyArn=physical_id)["Policy"]
        return {"PolicyArn": physical_id, "PolicyId": policy["PolicyId"]}

    def delete(self, context: ResourceContext, physical_id: str, properties: Properties) -> None:
        """Detaches the policy and calls DeletePolicy."""
        client = context.client("iam")
        with ignoring(_MISSING):
            self._attach(context, physical_id, properties, {})
        with ignoring(_MISSING):
            self._drop_old_versions(client, physical_id)
            client.delete_policy(PolicyArn=physical_id)

    def _drop_old_versions(self, client: Any, arn: str) -> None:
        for version in client.list_policy_versions(PolicyArn=arn)["Versions"]:
            if not version["IsDefaultVersion"]:
                client.delete_policy_version(PolicyArn=arn, VersionId=version["VersionId"])

    def _attach(self, context: ResourceContext, arn: str, old: Properties, new: Properties) -> None:
        client = context.client("iam")
        before, after = _principals(old), _principals(new)
        for kind, name in sorted(after - before):
            call(client, f"Attach{kind}Policy", {f"{kind}Name": name, "PolicyArn": arn})
        for kind, name in sorted(before - after):
            with ignoring(_MISSING):
                call(client, f"Detach{kind}Policy", {f"{kind}Name": name, "PolicyArn": arn})


def _principals(properties: Properties) -> set[tuple[str, str]]:
    """Returns the kind and the name of every role, user and group of a policy."""
    kinds = ("Role", "User", "Group")
    return {(kind, name) for kind in kinds for name in properties.get(f"{kind}s", [])}
