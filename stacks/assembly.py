"""Adds stacks to an app: the foundation, the images that models need, and one per model.

An isolated model has a second stack with the key of its artifacts. A model whose copies run on the
endpoint of another model needs the other model's stack, so that a selection of one has both.
`local` has no images, because the embedded AWS runs the containers' programs as processes.

One bad model never blocks another: it becomes an empty stack of its name that carries the whole
report as an error. The other stacks can be deployed, diffed and destroyed. Selecting the bad stack
fails with the report, and destroying it works too. A model without files for the environment
belongs to other environments. It has no stack in a plain app, which says so. A model without a file
has such an empty stack as well, in commands that deploy nothing, so that it can be destroyed.
"""

import functools
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

import aws_cdk as cdk
from constructs import Node

from slipway.codes.code import Code
from slipway.config.environments import Environment
from slipway.config.names import LOCAL
from slipway.config.schema import is_model_name
from slipway.errors import UserError
from slipway.image_sources import IMAGE_SOURCES
from slipway.planning.artifact_place import FOUNDATION_ID, artifact_place
from slipway.planning.artifacts import any_source, has_source
from slipway.planning.families import deployment_of
from slipway.planning.plan import DeploymentPlan, ImagePlan
from slipway.planning.rules import isolation
from slipway.project import Project
from slipway.shared_endpoints import models_sharing_endpoint, named_host
from slipway.stacks.artifacts_stack import ArtifactsStack
from slipway.stacks.endpoint_stack import EndpointStack
from slipway.stacks.foundation_stack import FoundationStack
from slipway.stacks.guest_stack import GuestStack
from slipway.stacks.image_stack import ImageStack, image_stack_id, images_to_build, repository_name
from slipway.stacks.model_stack import ModelStack

ALL_MODELS = ("*",)


@dataclass(frozen=True)
class Selection:
    """The selection on the command line, as CDK context.

    Args:
        models: patterns (fnmatch) of the selected models.
        allow_unpublished: whether models without a published artifact are synthesised.
        deploys: whether the CDK CLI may deploy or compare stacks; False for `cdk destroy`.
    """

    environment: str = LOCAL
    models: Sequence[str] = ALL_MODELS
    allow_unpublished: bool = False
    deploys: bool = True

    @classmethod
    def from_context(cls, node: Node) -> "Selection":
        """Reads `env`, `models` and `allow-unpublished`.

        Raises:
            UserError: `models` is empty, or `allow-unpublished` is neither true nor false.
        """
        models = str(node.try_get_context("models") or "*")
        allow = str(node.try_get_context("allow-unpublished") or "false").lower()
        if allow not in ("true", "false"):
            raise UserError.of(
                Code.WRONG_OPTIONS,
                f"`-c allow-unpublished={allow}` is neither true nor false",
                "Write `-c allow-unpublished=true`, or leave it out.",
            )
        patterns = tuple(pattern.strip() for pattern in models.split(",") if pattern.strip())
        if not patterns:
            raise UserError.of(
                Code.WRONG_OPTIONS,
                f"`-c models={models}` names no model",
                "Write names or patterns with commas between them, or leave it out.",
            )
        return cls(
            environment=str(node.try_get_context("env") or LOCAL),
            models=patterns,
            allow_unpublished=allow == "true",
            # Which stacks bundle assets. The CLI names none in commands that use no assets.
            deploys=node.try_get_context("aws:cdk:bundling-stacks") != [],
        )

    def without_file(self, project: Project) -> list[str]:
        """Returns the selected models of which only a stack can be left."""
        names = [] if self.deploys else self.models
        return [name for name in names if is_model_name(name) and name not in project.files]


def add_stacks(app: cdk.App, project: Project, selection: Selection) -> None:
    """Adds the foundation, every selected model's stack and the images they need to the app.

    Raises:
        UserError: the environment is invalid, or a pattern matches no model.
    """
    environment = project.environment(selection.environment)
    gone = selection.without_file(project)
    patterns = [pattern for pattern in selection.models if pattern not in gone]
    # A project without models is new, and deploys the foundation alone first.
    names = project.select(patterns) if project.files or patterns != [*ALL_MODELS] else []
    names = [*_with_those_beside(project, names, environment), *gone]
    absent: list[str] = []
    if selection.models == ALL_MODELS and not selection.allow_unpublished:
        absent = [name for name in names if _has_nothing(project, name, environment)]
    target = cdk.Environment(account=environment.account, region=environment.region)
    foundation = FoundationStack(app, FOUNDATION_ID, environment=environment, env=target)
    images = _Images(app, project, environment, target, foundation)
    if absent:
        cdk.Annotations.of(foundation).add_info(
            f"Without a stack, having no {environment.artifacts} for {environment.name}: "
            f"{', '.join(absent)}. `-c models=NAME` shows what one of them needs."
        )
    stacks: dict[str, cdk.Stack] = {}
    for name in names:
        if name in absent:
            continue
        stack = _model_stack(app, project, name, environment, target, selection, images)
        stacks[name] = stack
        artifacts = _artifacts_stack(app, project, name, environment, target)
        if artifacts is not None:
            artifacts.add_stack_dependency(foundation, "It makes the bucket of the artifacts.")
            stack.add_stack_dependency(artifacts, "The model's files are encrypted with its key.")
            _mention_what_is_left_out(stack, "key", artifacts.node.id, environment)
        stack.add_stack_dependency(foundation, "The model's files and alarms need it.")
        _mention_what_is_left_out(stack, "foundation", FOUNDATION_ID, environment)
    hosts = {name: named_host(project, name, environment) for name in stacks}
    for name, stack in stacks.items():
        host = hosts[name]
        # Of models that name each other as their hosts, both carry reports.
        if host in stacks and hosts[host] is None:
            stack.add_stack_dependency(stacks[host], "The model's copies run on its endpoint.")
            if isinstance(stack, GuestStack):
                _mention_what_is_left_out(stack, "endpoint", host, environment)


def _with_those_beside(
    project: Project, names: Sequence[str], environment: Environment
) -> list[str]:
    """Returns models with the models that share their endpoints, in order.

    A guest is deployed after its host, and destroyed before it.
    """
    found, left = set[str](), list(names)
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += models_sharing_endpoint(project, name, environment)
    return [name for name in project.files if name in found]


def _has_nothing(project: Project, name: str, environment: Environment) -> bool:
    """Returns whether a model belongs to other environments only.

    `cdk deploy --all` then leaves it out.
    """
    try:
        deployment = project.deployment(name, environment)
    except UserError:
        return False  # its stack carries the report
    return any_source(deployment) and not has_source(deployment)


def _mention_what_is_left_out(
    stack: cdk.Stack, what: str, needed_id: str, environment: Environment
) -> None:
    """Adds a note for `cdk deploy NAME --exclusively` that names the stacks left out."""
    named = stack.node.try_get_context("aws:cdk:bundling-stacks") or ["**"]
    if "**" not in named and not any(name.startswith(needed_id) for name in named):
        cdk.Annotations.of(stack).add_info(
            f"Deployed without its {what} (--exclusively). Where that is not there yet, "
            f"run `cdk deploy {needed_id} -c env={environment.name}` first."
        )


class _Images:
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
                _mention_what_is_left_out(stack, "foundation", FOUNDATION_ID, self._environment)
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


def plan_stack(
    scope: cdk.App, construct_id: str, *, plan: DeploymentPlan, env: cdk.Environment
) -> ModelStack:
    """Returns the stack of a plan: with an endpoint, or with copies on another model's endpoint."""
    kind = EndpointStack if plan.host is None else GuestStack
    return kind(scope, construct_id, plan=plan, env=env)


def _model_stack(
    app: cdk.App,
    project: Project,
    name: str,
    environment: Environment,
    target: cdk.Environment,
    selection: Selection,
    images: _Images,
) -> cdk.Stack:
    try:
        plan = project.plan(name, environment, allow_unpublished=selection.allow_unpublished)
    except UserError as error:
        # In a new account images are built before anything is published.
        if (family := _family(project, name, environment)) is not None:
            images.stack_of(family)
        return _error_stack(app, name, environment, target, error)
    stack = plan_stack(app, name, plan=plan, env=target)
    image_stack = images.stack_with(plan.image)
    if image_stack is not None:
        stack.add_stack_dependency(image_stack, "The model's container needs it.")
        _mention_what_is_left_out(stack, "image", image_stack.node.id, environment)
    return stack


def _artifacts_stack(
    app: cdk.App, project: Project, name: str, environment: Environment, target: cdk.Environment
) -> ArtifactsStack | None:
    """Adds the stack of an isolated model's key, which exists before the model can be planned."""
    try:
        config = project.config(name, environment.name).config
        if not config.artifacts.isolated:
            return None
    except UserError:
        return None  # the model's stack carries the report
    deployment = deployment_of(config, environment)
    if any(list(rule(deployment)) for rule in isolation.RULES):
        return None
    return ArtifactsStack(
        app,
        artifact_place(config, environment).stack_id,
        config=config,
        environment=environment,
        env=target,
    )


def _family(project: Project, name: str, environment: Environment) -> str | None:
    """Returns the family whose image an unplannable model needs; None if its config is invalid."""
    try:
        return project.deployment(name, environment).image_family
    except UserError:
        return None


def _error_stack(
    app: cdk.App, name: str, environment: Environment, target: cdk.Environment, error: UserError
) -> cdk.Stack:
    """Adds the empty stack that carries a report."""
    construct_id, stack_name = name, environment.stack_name(name)
    if not is_model_name(name):
        # A file may have a name that no stack can have, or the name of another stack. It then gets
        # a name that belongs to nothing, because destroying it would otherwise destroy the other
        # stack.
        unique = f"invalid-{hashlib.sha256(name.encode(errors='surrogateescape')).hexdigest()[:12]}"
        stack_name = environment.stack_name(unique)
        construct_id = f"{name}.yaml" if re.fullmatch(r"[A-Za-z0-9][\w.-]*", name, re.A) else unique
    stack = cdk.Stack(app, construct_id, stack_name=stack_name, env=target)
    cdk.Annotations.of(stack).add_error(str(error))
    # The stack is empty on purpose; without this the CDK's own checks fail the whole synthesis.
    cdk.Validations.of(stack).acknowledge(
        cdk.Acknowledgment(
            id="CloudFormation-Validate::F0001", reason="Carries a report instead of resources."
        )
    )
    return stack
