"""A container that Slipway builds: its repository, and the builds of its images."""

import json
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_ecr as ecr
from aws_cdk import aws_s3_assets as assets
from constructs import Construct

from slipway.config.environments import Environment
from slipway.config.sections.keys import ARTIFACT_KEY
from slipway.image_sources import copy_image_files
from slipway.planning.images import compiler_image
from slipway.planning.plan import ImageBase, ImagePlan
from slipway.stacks.constructs.image_build import ImageBuild, ImageToBuild
from slipway.stacks.foundation_ids import ARTIFACT_KEY_ARN, read_id
from slipway.stacks.role_boundary import limit_roles

# Stages of the Dockerfile.
SERVING_TARGET = "serving"
COMPILER_TARGET = "compiler"
_UNTAGGED_DAYS = 1


def image_stack_id(family: str) -> str:
    """Returns the construct id of a container's stack, which no model can have."""
    return f"image-{family}"


def repository_name(environment: Environment, family: str) -> str:
    """Returns the name of a container's repository."""
    return f"{environment.repository_prefix}{family}"


def images_to_build(
    environment: Environment, family: str, digest: str, bases: Iterable[ImageBase]
) -> list[ImageToBuild]:
    """Returns every image of a container, for each base that a plan can choose.

    One image serves and the other compiles. All of them are built, whatever models were selected.
    The stack's content then does not depend on the selection, and the first model on an accelerator
    does not wait for a build.
    """
    images: list[ImageToBuild] = []
    for base in bases:
        serving = ImagePlan(
            environment.account,
            environment.region,
            repository_name(environment, family),
            f"{base.pinned_tag}-{digest}",
        )
        images.append(ImageToBuild(base.tag, serving, base.uri, SERVING_TARGET))
        if base.compiles:
            compiler = compiler_image(serving)
            images.append(ImageToBuild(base.tag, compiler, base.uri, COMPILER_TARGET))
    return images


class ImageStack(cdk.Stack):
    """One per container that Slipway builds; its images stay when it is deleted.

    An account has one repository of a name in a region. If several environments share it, one of
    them has the repository in its stack, and all of them build into it.

    Args:
        owner: name of the environment whose stack has the repository.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        environment: Environment,
        family: str,
        root: Path,
        digest: str,
        images: Sequence[ImageToBuild],
        owner: str,
        env: cdk.Environment,
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            stack_name=environment.stack_name(construct_id),
            description=f"Slipway: the {family} container of {environment.name}",
            env=env,
        )
        for key, value in environment.tags.items():
            cdk.Tags.of(self).add(key, value)
        limit_roles(self, environment.permissions_boundary_arn)
        self._artifact_key_arn: str | None = None
        self.image_uris = frozenset(each.image.uri for each in images)
        name = repository_name(environment, family)
        repositories: Sequence[ecr.CfnRepository] = ()
        if owner == environment.name:
            key_arn = self._key_arn(environment, environment.image_builds.repository_key)
            repositories = [_repository(self, name, key_arn)]
        else:
            cdk.Annotations.of(self).add_info(
                f"The repository {name} belongs to the environment {owner}, which comes first in "
                "environments.yaml and has the same account and region. Where it is not there yet, "
                f"run `cdk deploy {construct_id} -c env={owner}` first."
            )
        with tempfile.TemporaryDirectory() as folder:
            copy_image_files(root, family, Path(folder))
            # Slipway's own fingerprint, so that asset and tag change together.
            sources = assets.Asset(
                self,
                "Sources",
                path=folder,
                asset_hash=digest,
                asset_hash_type=cdk.AssetHashType.CUSTOM,
            )
        ca_bundle, authorities = environment.image_builds.ca_bundle, None
        if ca_bundle is not None:
            authorities = assets.Asset(self, "Authorities", path=str(root / ca_bundle))
        ImageBuild(
            self,
            "Build",
            settings=environment.image_builds,
            log_key_arn=self._key_arn(environment, environment.log_key),
            ca_bundle=authorities,
            images=images,
            sources=sources,
            dockerfile=f"containers/{family}/Dockerfile",
            after=repositories,
        )

    def _key_arn(self, environment: Environment, choice: str | None) -> str | None:
        """Returns the ARN of a key that environments.yaml chooses."""
        if choice != ARTIFACT_KEY:
            return choice
        if self._artifact_key_arn is None:
            self._artifact_key_arn = read_id(self, environment.parameter_prefix, ARTIFACT_KEY_ARN)
        return self._artifact_key_arn

    @property
    def needs_foundation(self) -> bool:
        """Returns whether the stack reads the foundation's artifact key, which must exist first."""
        return self._artifact_key_arn is not None


def _repository(stack: ImageStack, name: str, key_arn: str | None) -> ecr.CfnRepository:
    """Adds the repository.

    When the stack is deleted the repository stays with its images, because an endpoint may run from
    them, in this environment or another. When the stack's own creation fails it is deleted with its
    images, because it would block the next attempt.
    """
    repository = ecr.CfnRepository(
        stack,
        "Repository",
        repository_name=name,
        # A tag is a fingerprint of the content, so it must not get other content.
        image_tag_mutability="IMMUTABLE",
        image_scanning_configuration=ecr.CfnRepository.ImageScanningConfigurationProperty(
            scan_on_push=True
        ),
        # Set explicitly, because it is create-only and a release must not change the default. ECR
        # uses a key through grants of its own: builds and endpoints need no right on it.
        # https://docs.aws.amazon.com/AmazonECR/latest/userguide/encryption-at-rest.html, 2026-11-22
        encryption_configuration=ecr.CfnRepository.EncryptionConfigurationProperty(
            encryption_type="AES256" if key_arn is None else "KMS", kms_key=key_arn
        ),
        lifecycle_policy=ecr.CfnRepository.LifecyclePolicyProperty(
            lifecycle_policy_text=_lifecycle()
        ),
        empty_on_delete=True,
    )
    repository.apply_removal_policy(cdk.RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE)
    return repository


def _lifecycle() -> str:
    """Returns the rule about images without a tag, which no endpoint names.

    No rule expires a tagged image. ECR's rules count images, or days since a push or a pull, and
    none knows what serves
    (https://docs.aws.amazon.com/AmazonECR/latest/userguide/lifecycle_policy_parameters.html, read
    2026-11-28). An endpoint pulls its image only when it starts an instance, after years perhaps.
    `slipway prune` asks the account what serves.
    """
    selection = {
        "tagStatus": "untagged",
        "countType": "sinceImagePushed",
        "countUnit": "days",
        "countNumber": _UNTAGGED_DAYS,
    }
    rule = {
        "rulePriority": 1,
        "description": "No tag, no endpoint",
        "selection": selection,
        "action": {"type": "expire"},
    }
    return json.dumps({"rules": [rule]})
