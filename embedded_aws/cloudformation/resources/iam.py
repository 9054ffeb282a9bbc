"""Roles and policies."""

from typing import Any

from slipway.embedded_aws.cloudformation.resources.base import (
    Physical,
    Properties,
    ResourceContext,
    ResourceHandler,
    allowed_members,
    changed,
    document_text,
    ignoring,
    selected,
    tag_list,
)

_NAME_LENGTH = 64
_MISSING = "NoSuchEntity"
_DEFAULT_SESSION_SECONDS = 3600


class RoleHandler(ResourceHandler):
    type_name = "AWS::IAM::Role"
    service = "iam"
    deletion = ("DeleteRole", "RoleName")
    gone = (_MISSING,)
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

    def create(self, context: ResourceContext, properties: Properties) -> Physical:
        name = properties.get("RoleName") or context.physical_name(maximum=_NAME_LENGTH)
        fields = ("Description", "MaxSessionDuration", "Path", "PermissionsBoundary")
        request = {
            "RoleName": name,
            "AssumeRolePolicyDocument": document_text(properties["AssumeRolePolicyDocument"]),
            **selected(properties, *fields),
            "Tags": tag_list(properties) or None,
        }
        role = context.call("CreateRole", request)["Role"]
        context.initiated(name)
        self._set_policies(context.api, name, {}, properties)
        return Physical(name, selected(role, "Arn", "RoleId"))

    def update(self, context: ResourceContext, old: Properties, new: Properties) -> None:
        name, client = context.physical_id, context.api
        if changed(old, new, "AssumeRolePolicyDocument"):
            trust = document_text(new["AssumeRolePolicyDocument"])
            client.update_assume_role_policy(RoleName=name, PolicyDocument=trust)
        if changed(old, new, "Description", "MaxSessionDuration"):
            client.update_role(
                RoleName=name,
                Description=new.get("Description", ""),
                MaxSessionDuration=int(new.get("MaxSessionDuration", _DEFAULT_SESSION_SECONDS)),
            )
        if changed(old, new, "PermissionsBoundary"):
            if boundary := selected(new, "PermissionsBoundary"):
                client.put_role_permissions_boundary(RoleName=name, **boundary)
            else:
                client.delete_role_permissions_boundary(RoleName=name)
        self._set_policies(client, name, old, new)
        context.update_tags(name, old, new, add="TagRole", remove="UntagRole")

    def delete(self, context: ResourceContext, properties: Properties) -> None:
        """Removes the role's own policies, then calls DeleteRole; other policies make that fail."""
        with ignoring(_MISSING):
            self._set_policies(context.api, context.physical_id, properties, {})
        super().delete(context, properties)

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
    """One inline policy of several roles, users and groups."""

    type_name = "AWS::IAM::Policy"
    service = "iam"
    properties = frozenset({"Groups", "PolicyDocument", "PolicyName", "Roles", "Users"})
    attributes = frozenset({"Id"})

    def create(self, context: ResourceContext, properties: Properties) -> Physical:
        physical_id = context.physical_name(maximum=_NAME_LENGTH)
        self.update(context, {}, properties)
        return Physical(physical_id, {"Id": physical_id})

    def update(self, context: ResourceContext, old: Properties, new: Properties) -> None:
        """Writes the policy, and removes it from principals that left the lists."""
        before = {(*principal, old["PolicyName"]) for principal in _principals(old)}
        after = {(*principal, new["PolicyName"]) for principal in _principals(new)}
        for kind, principal, policy in sorted(after):
            document = document_text(new["PolicyDocument"])
            request = {f"{kind}Name": principal, "PolicyName": policy, "PolicyDocument": document}
            context.call(f"Put{kind}Policy", request)
        for kind, principal, policy in sorted(before - after):
            with ignoring(_MISSING):
                request = {f"{kind}Name": principal, "PolicyName": policy}
                context.call(f"Delete{kind}Policy", request)

    def delete(self, context: ResourceContext, properties: Properties) -> None:
        self.update(context, properties, {})


class ManagedPolicyHandler(ResourceHandler):
    type_name = "AWS::IAM::ManagedPolicy"
    service = "iam"
    deletion = ("DeletePolicy", "PolicyArn")
    gone = (_MISSING,)
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
        name = properties.get("ManagedPolicyName") or context.physical_name(maximum=128)
        request = {
            "PolicyName": name,
            "PolicyDocument": document_text(properties["PolicyDocument"]),
            **selected(properties, "Description", "Path"),
        }
        policy = context.call("CreatePolicy", request)["Policy"]
        context.initiated(policy["Arn"])
        self._attach(context, policy["Arn"], {}, properties)
        return Physical(policy["Arn"], selected(policy, "PolicyId", PolicyArn="Arn"))

    def update(self, context: ResourceContext, old: Properties, new: Properties) -> None:
        """Creates a new default version and deletes the others, as CloudFormation does."""
        if changed(old, new, "PolicyDocument"):
            self._drop_old_versions(context)
            context.api.create_policy_version(
                PolicyArn=context.physical_id,
                PolicyDocument=document_text(new["PolicyDocument"]),
                SetAsDefault=True,
            )
        self._attach(context, context.physical_id, old, new)

    def delete(self, context: ResourceContext, properties: Properties) -> None:
        with ignoring(_MISSING):
            self._attach(context, context.physical_id, properties, {})
            self._drop_old_versions(context)
        super().delete(context, properties)

    def _drop_old_versions(self, context: ResourceContext) -> None:
        arn = context.physical_id
        for version in context.api.list_policy_versions(PolicyArn=arn)["Versions"]:
            if not version["IsDefaultVersion"]:
                context.api.delete_policy_version(PolicyArn=arn, VersionId=version["VersionId"])

    def _attach(self, context: ResourceContext, arn: str, old: Properties, new: Properties) -> None:
        before, after = _principals(old), _principals(new)
        for kind, name in sorted(after - before):
            context.call(f"Attach{kind}Policy", {f"{kind}Name": name, "PolicyArn": arn})
        for kind, name in sorted(before - after):
            with ignoring(_MISSING):
                context.call(f"Detach{kind}Policy", {f"{kind}Name": name, "PolicyArn": arn})


def _principals(properties: Properties) -> set[tuple[str, str]]:
    """Returns the kind and the name of every role, user and group of a policy."""
    kinds = ("Role", "User", "Group")
    return {(kind, name) for kind in kinds for name in properties.get(f"{kind}s", [])}
