"""Container image repositories."""

from typing import Any

from slipway.embedded_aws.cloudformation.resources.base import (
    Attributes,
    Physical,
    Properties,
    ResourceContext,
    ResourceHandler,
    allowed_members,
    changed,
    document_text,
    ignoring,
    tag_list,
)


class RepositoryHandler(ResourceHandler):
    type_name = "AWS::ECR::Repository"
    service = "ecr"
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

    def create(self, context: ResourceContext, properties: Properties) -> Physical:
        name = properties.get("RepositoryName") or context.physical_name(maximum=256, lower=True)
        encryption = properties.get("EncryptionConfiguration") or {}
        request: dict[str, Any] = {
            "repositoryName": name,
            "imageTagMutability": properties.get("ImageTagMutability"),
            "imageScanningConfiguration": _scanning(properties),
            "encryptionConfiguration": {
                key[:1].lower() + key[1:]: value for key, value in encryption.items()
            }
            or None,
            "tags": tag_list(properties) or None,
        }
        context.call("CreateRepository", request)
        context.initiated(name)
        self._set_policies(context, name, {}, properties)
        return Physical(name, self._attributes(context, name))

    def update(self, context: ResourceContext, old: Properties, new: Properties) -> None:
        name = context.physical_id
        if changed(old, new, "ImageTagMutability"):
            context.api.put_image_tag_mutability(
                repositoryName=name, imageTagMutability=new.get("ImageTagMutability", "MUTABLE")
            )
        if changed(old, new, "ImageScanningConfiguration"):
            request = {"repositoryName": name, "imageScanningConfiguration": _scanning(new)}
            context.call("PutImageScanningConfiguration", request)
        self._set_policies(context, name, old, new)
        context.update_tags(self._attributes(context, name)["Arn"], old, new)

    def delete(self, context: ResourceContext, properties: Properties) -> None:
        """Calls DeleteRepository, which fails if there are images, unless EmptyOnDelete is set."""
        force = properties.get("EmptyOnDelete")
        with ignoring("RepositoryNotFoundException"):
            request = {"repositoryName": context.physical_id, "force": force}
            context.call("DeleteRepository", request)

    def existing(self, context: ResourceContext, properties: Properties) -> Physical | None:
        name = properties["RepositoryName"]
        with ignoring("RepositoryNotFoundException"):
            context.api.describe_repositories(repositoryNames=[name])
            return Physical(name, self._attributes(context, name))
        return None

    def _set_policies(
        self, context: ResourceContext, name: str, old: Properties, new: Properties
    ) -> None:
        client = context.api
        if changed(old, new, "LifecyclePolicy"):
            lifecycle = new.get("LifecyclePolicy", {})
            # A registry id can only be the account's own here.
            allowed_members(lifecycle, ("LifecyclePolicyText",), "LifecyclePolicy")
            if text := lifecycle.get("LifecyclePolicyText"):
                client.put_lifecycle_policy(repositoryName=name, lifecyclePolicyText=text)
            else:
                with ignoring("LifecyclePolicyNotFoundException"):
                    client.delete_lifecycle_policy(repositoryName=name)
        if changed(old, new, "RepositoryPolicyText"):
            if policy := new.get("RepositoryPolicyText"):
                client.set_repository_policy(repositoryName=name, policyText=document_text(policy))
            else:
                with ignoring("RepositoryPolicyNotFoundException"):
                    client.delete_repository_policy(repositoryName=name)

    def _attributes(self, context: ResourceContext, name: str) -> Attributes:
        registry = f"{context.identity.account_id}.dkr.ecr.{context.region}.amazonaws.com"
        arn = context.arn("ecr", f"repository/{name}")
        return {"Arn": arn, "RepositoryUri": f"{registry}/{name}"}


def _scanning(properties: Properties) -> dict[str, Any]:
    configuration = properties.get("ImageScanningConfiguration", {})
    allowed_members(configuration, ("ScanOnPush",), "ImageScanningConfiguration")
    return {"scanOnPush": configuration.get("ScanOnPush", False)}
