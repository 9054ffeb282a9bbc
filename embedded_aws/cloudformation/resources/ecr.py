"""Container image repositories."""

from typing import Any

from slipway.embedded_aws.cloudformation.resources.api_calls import (
    allowed_members,
    call,
    document_text,
    ignoring,
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

_NO_SCAN = {"ScanOnPush": False}


class RepositoryHandler(ResourceHandler):
    """AWS::ECR::Repository."""

    type_name = "AWS::ECR::Repository"
    properties = frozenset(
        {
            "EmptyOnDelete",
            "EncryptionConfiguration",
            "ImageScanningConfiguration",
            "ImageTagMutability",
            "LifecyclePolicy",
            "RepositoryName",
            "RepositoryPolicyText",
            "Tags",
        }
    )
    name_property = "RepositoryName"
    attributes = frozenset({"Arn", "RepositoryUri"})
    tags = TagStyle.LIST

    def create(self, context: ResourceContext, properties: Properties) -> Physical:
        """Calls CreateRepository, then sets its policies."""
        name = properties.get("RepositoryName") or context.physical_name(maximum=256, lower=True)
        encryption = properties.get("EncryptionConfiguration")
        request: dict[str, Any] = {
            "repositoryName": name,
            "imageTagMutability": properties.get("ImageTagMutability"),
            "imageScanningConfiguration": _scanning(properties),
            "encryptionConfiguration": (
                {key[:1].lower() + key[1:]: value for key, value in encryption.items()}
                if encryption
                else None
            ),
            "tags": tag_list(properties) or None,
        }
        call(context.client("ecr"), "CreateRepository", request)
        context.initiated(name)
        self._set_lifecycle(context, name, {}, properties)
        self._set_policy(context, name, {}, properties)
        return Physical(name, self._attributes(context, name))

    def update(
        self, context: ResourceContext, physical_id: str, old: Properties, new: Properties
    ) -> Attributes:
        """Changes everything but the name and the encryption."""
        client = context.client("ecr")
        attributes = self._attributes(context, physical_id)
        if changed(old, new, "ImageTagMutability"):
            client.put_image_tag_mutability(
                repositoryName=physical_id,
                imageTagMutability=new.get("ImageTagMutability", "MUTABLE"),
            )
        if changed(old, new, "ImageScanningConfiguration"):
            request = {"repositoryName": physical_id, "imageScanningConfiguration": _scanning(new)}
            call(client, "PutImageScanningConfiguration", request)
        self._set_lifecycle(context, physical_id, old, new)
        self._set_policy(context, physical_id, old, new)
        update_tags(client, attributes["Arn"], old, new)
        return attributes

    def delete(self, context: ResourceContext, physical_id: str, properties: Properties) -> None:
        """Calls DeleteRepository, which fails if there are images, unless EmptyOnDelete is set."""
        with ignoring("RepositoryNotFoundException"):
            request = {"repositoryName": physical_id, "force": properties.get("EmptyOnDelete")}
            call(context.client("ecr"), "DeleteRepository", request)

    def existing(self, context: ResourceContext, properties: Properties) -> Physical | None:
        """Returns the repository of that name."""
        name = properties["RepositoryName"]
        with ignoring("RepositoryNotFoundException"):
            context.client("ecr").describe_repositories(repositoryNames=[name])
            return Physical(name, self._attributes(context, name))
        return None

    def _set_lifecycle(
        self, context: ResourceContext, name: str, old: Properties, new: Properties
    ) -> None:
        if not changed(old, new, "LifecyclePolicy"):
            return
        client = context.client("ecr")
        policy = new.get("LifecyclePolicy", {})
        # A registry id can only be the account's own here.
        allowed_members(policy, ("LifecyclePolicyText",), "LifecyclePolicy")
        text = policy.get("LifecyclePolicyText")
        if text:
            client.put_lifecycle_policy(repositoryName=name, lifecyclePolicyText=text)
        else:
            with ignoring("LifecyclePolicyNotFoundException"):
                client.delete_lifecycle_policy(repositoryName=name)

    def _set_policy(
        self, context: ResourceContext, name: str, old: Properties, new: Properties
    ) -> None:
        if not changed(old, new, "RepositoryPolicyText"):
            return
        client = context.client("ecr")
        policy = new.get("RepositoryPolicyText")
        if policy:
            client.set_repository_policy(repositoryName=name, policyText=document_text(policy))
        else:
            with ignoring("RepositoryPolicyNotFoundException"):
                client.delete_repository_policy(repositoryName=name)

    def _attributes(self, context: ResourceContext, name: str) -> Attributes:
        registry = f"{context.identity.account_id}.dkr.ecr.{context.region}.amazonaws.com"
        return {
            "Arn": context.arn("ecr", f"repository/{name}"),
            "RepositoryUri": f"{registry}/{name}",
        }


def _scanning(properties: Properties) -> dict[str, Any]:
    configuration = properties.get("ImageScanningConfiguration", _NO_SCAN)
    allowed_members(configuration, ("ScanOnPush",), "ImageScanningConfiguration")
    return {"scanOnPush": configuration.get("ScanOnPush", False)}
