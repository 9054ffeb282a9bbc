"""Containers that Slipway builds: a repository for each, and the builds of its images."""

import functools
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
from slipway.errors import UserError
from slipway.image_sources import IMAGE_SOURCES, copy_image_files
from slipway.planning.artifact_place import FOUNDATION_ID
from slipway.planning.compiling import compiler_image
from slipway.planning.plan import ImageBase, ImagePlan
from slipway.project import Project
from slipway.stacks.constructs.image_build import ImageBuild, ImageToBuild
from slipway.stacks.constructs.statements import limit_roles
from slipway.stacks.foundation_ids import ARTIFACT_KEY_ARN, read_id
from slipway.stacks.foundation_stack import FoundationStack

# Stages of the Dockerfile.
SERVING_TARGET = "serving"
COMPILER_TARGET = "compiler"
_UNTAGGED_DAYS = 1


def image_stack_id(family: str) -> str:
    """Returns the construct id of a container's stack, which no model can have."""
    return f"image-{family}"


def repository_name(environment: Environment, family: str) -> str:
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
    them has the repository in its stack, and all of them build into it. `owner` names it.
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


class ImageStacks:
    """The stacks of images, each added when a model first needs it."""

    def __init__(
        self,
        app: cdk.App,
        project: Project,
        environment: Environment,
        target: cdk.Environment,
        foundation: FoundationStack,
    ) -> None:
        self._app = app
        self._foundation = foundation
        self._project = project
        self._environment = environment
        self._target = target
        self._stacks: dict[str, ImageStack] = {}

    def stack_of(self, family: str) -> ImageStack | None:
        """Returns a container's stack; None if the environment needs none or has no sources."""
        if self._environment.is_local:
            return None
        if family not in self._stacks:
            try:
                digest = self._project.image_digest(family)
            except UserError:
                # A source is missing: every model that needs the image carries the report.
                return None
            bases = self._project.image_bases(family, self._environment)
            built = images_to_build(self._environment, family, digest, bases)
            if not built:
                return None  # no base that the models name exists: they carry the report
            stack = ImageStack(
                self._app,
                image_stack_id(family),
                environment=self._environment,
                family=family,
                root=self._project.root,
                digest=digest,
                images=built,
                owner=self._owner,
                env=self._target,
            )
            if stack.needs_foundation:
                stack.add_stack_dependency(self._foundation, "It has the key.")
                mention_what_is_left_out(stack, "foundation", FOUNDATION_ID, self._environment)
            self._stacks[family] = stack
        return self._stacks[family]

    def stack_with(self, image: ImagePlan) -> ImageStack | None:
        """Returns the stack that builds an image; None if no stack does."""
        for family in IMAGE_SOURCES:
            if image.repository == repository_name(self._environment, family):
                stack = self.stack_of(family)
                return stack if stack is not None and image.uri in stack.image_uris else None
        return None

    @functools.cached_property
    def _owner(self) -> str:
        """Returns the environment with the repositories: the first of this account and region."""
        for name in self._project.environment_names:
            try:
                other = self._project.environment(name)
            except UserError:
                continue  # nothing can be deployed there
            place = (self._environment.account, self._environment.region)
            if not other.is_local and (other.account, other.region) == place:
                return name
        raise ValueError(f"{self._environment.name} is in its own file")


def mention_what_is_left_out(
    stack: cdk.Stack, what: str, needed_id: str, environment: Environment
) -> None:
    """Adds a note for `cdk deploy NAME --exclusively` that names the stacks left out."""
    named = stack.node.try_get_context("aws:cdk:bundling-stacks") or ["**"]
    if "**" not in named and not any(name.startswith(needed_id) for name in named):
        cdk.Annotations.of(stack).add_info(
            f"Deployed without its {what} (--exclusively). Where that is not there yet, "
            f"run `cdk deploy {needed_id} -c env={environment.name}` first."
        )
