"""The stacks of the images that an app's models need."""

import functools

import aws_cdk as cdk

from slipway.config.environments import Environment
from slipway.errors import UserError
from slipway.image_sources import IMAGE_SOURCES
from slipway.planning.artifact_place import FOUNDATION_ID
from slipway.planning.plan import ImagePlan
from slipway.project import Project
from slipway.stacks.foundation_stack import FoundationStack
from slipway.stacks.image_stack import ImageStack, image_stack_id, images_to_build, repository_name


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
