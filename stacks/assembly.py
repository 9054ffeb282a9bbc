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

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Node

from slipway.codes.code import Code
from slipway.config.environments import Environment
from slipway.config.names import LOCAL
from slipway.config.schema import is_model_name
from slipway.config.sections.serving import PACKAGES
from slipway.errors import UserError
from slipway.planning.artifact_place import FOUNDATION_ID, artifact_place
from slipway.planning.artifacts import any_source, has_source
from slipway.planning.families import deployment_of
from slipway.planning.plan import DeploymentPlan
from slipway.planning.rules.surroundings import ISOLATION
from slipway.project import Project
from slipway.shared_endpoints import models_sharing_endpoint, named_host
from slipway.stacks.artifacts_stack import ArtifactsStack
from slipway.stacks.endpoint_stack import EndpointStack
from slipway.stacks.foundation_stack import FoundationStack
from slipway.stacks.guest_stack import AdapterStack, GuestStack
from slipway.stacks.image_stack import ImageStacks, mention_what_is_left_out
from slipway.stacks.model_stack import ModelStack

ALL_MODELS = ("*",)


@dataclass(frozen=True)
class Selection:
    """The selection on the command line, as CDK context; `models` are patterns (fnmatch).

    The CDK CLI may deploy or compare stacks, unless `deploys` is False for `cdk destroy`.
    """

    environment: str = LOCAL
    models: Sequence[str] = ALL_MODELS
    allow_unpublished: bool = False
    deploys: bool = True

    @classmethod
    def from_context(cls, node: Node) -> "Selection":
        """Reads `env`, `models` and `allow-unpublished`; raises `UserError`."""
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


class ProjectStacks:
    """The stacks of a project: the foundation at once, and a model's when they are asked for.

    Raises `UserError` if the environment is invalid.
    """

    def __init__(self, app: cdk.App, project: Project, selection: Selection) -> None:
        self.project, self.selection = project, selection
        self.environment = project.environment(selection.environment)
        self.target = cdk.Environment(
            account=self.environment.account, region=self.environment.region
        )
        self.alarms: dict[str, list[cloudwatch.CfnAlarm]] = {}
        self._app = app
        self._foundation = FoundationStack(
            app, FOUNDATION_ID, environment=self.environment, env=self.target
        )
        # The family may need rights there, which the template then lacks.
        for problem in PACKAGES.problems.values():
            warnings = cdk.Annotations.of(self._foundation)
            warnings.add_warning_v2("slipway:family-package", str(problem))
        self._images = ImageStacks(app, project, self.environment, self.target, self._foundation)
        self._stacks: dict[str, cdk.Stack] = {}

    def add_selected(self) -> None:
        """Adds every selected model that has not been added; raises `UserError`."""
        project, environment, selection = self.project, self.environment, self.selection
        gone = selection.without_file(project)
        patterns = [pattern for pattern in selection.models if pattern not in gone]
        # A project without models is new, and deploys the foundation alone first.
        names = project.select(patterns) if project.files or patterns != [*ALL_MODELS] else []
        names = [*_with_those_beside(project, [*names, *self._stacks], environment), *gone]
        absent: list[str] = []
        if selection.models == ALL_MODELS and not selection.allow_unpublished:
            absent = [name for name in names if _has_nothing(project, name, environment)]
        if absent:
            cdk.Annotations.of(self._foundation).add_info(
                f"Without a stack, having no {environment.artifacts} for {environment.name}: "
                f"{', '.join(absent)}. `-c models=NAME` shows what one of them needs."
            )
        for name in names:
            if name not in absent and name not in self._stacks:
                self._add(name)
        hosts = {name: named_host(project, name, environment) for name in self._stacks}
        for name, stack in self._stacks.items():
            host = hosts[name]
            # Of models that name each other as their hosts, both carry reports.
            if host in self._stacks and hosts[host] is None:
                reason = "The model's copies run on its endpoint."
                stack.add_stack_dependency(self._stacks[host], reason)
                if isinstance(stack, GuestStack):
                    mention_what_is_left_out(stack, "endpoint", host, environment)

    def alarms_of(self, name: str) -> list[cloudwatch.CfnAlarm]:
        """Returns a model's alarms, for another stack, and adds the model's stack if it must.

        An unpublished model's stack then has its resources beside the report, which keeps the CDK
        CLI from deploying it and what depends on it.
        """
        if name not in self.alarms:
            plan, report = plan_and_report(
                self.project, name, self.environment, self.selection.allow_unpublished
            )
            self._add_planned(name, plan)
            if report is not None:
                cdk.Annotations.of(self._stacks[name]).add_error(str(report))
        return self.alarms[name]

    def include(
        self,
        name: str,
        stack: cdk.Stack,
        plan: DeploymentPlan | None,
        alarms: list[cloudwatch.CfnAlarm],
    ) -> None:
        """Takes a stack for the stack of a model, and makes it depend on what the model needs."""
        environment = self.environment
        self._stacks[name], self.alarms[name] = stack, alarms
        models = () if plan is None else plan.every_served
        images = dict.fromkeys(self._images.stack_with(each.image) for each in models)
        artifacts = _artifacts_stack(self._app, self.project, name, environment, self.target)
        stage = cdk.Stage.of(stack)
        if stage is not None and stage.node.path:
            return  # CloudFormation's order ends at a stage, so that its pipeline has to keep it
        for image in filter(None, images):
            stack.add_stack_dependency(image, "The model's container needs it.")
            mention_what_is_left_out(stack, "image", image.node.id, environment)
        if artifacts is not None:
            artifacts.add_stack_dependency(
                self._foundation, "It makes the bucket of the artifacts."
            )
            stack.add_stack_dependency(artifacts, "The model's files are encrypted with its key.")
            mention_what_is_left_out(stack, "key", artifacts.node.id, environment)
        stack.add_stack_dependency(self._foundation, "The model's files and alarms need it.")
        mention_what_is_left_out(stack, "foundation", FOUNDATION_ID, environment)

    def _add(self, name: str) -> None:
        """Adds the stack of a model, or in its place an empty one that carries the report."""
        environment = self.environment
        try:
            plan = self.project.plan(
                name, environment, allow_unpublished=self.selection.allow_unpublished
            )
        except UserError as error:
            # In a new account images are built before anything is published.
            for family in _families(self.project, name, environment):
                self._images.stack_of(family)
            stack = _error_stack(self._app, name, environment, self.target, error)
            self.include(name, stack, None, [])
        else:
            self._add_planned(name, plan)

    def _add_planned(self, name: str, plan: DeploymentPlan) -> None:
        stack = plan_stack(self._app, name, plan=plan, env=self.target)
        self.include(name, stack, plan, stack.alarms)


def plan_and_report(
    project: Project, name: str, environment: Environment, allow_unpublished: bool, /
) -> tuple[DeploymentPlan, UserError | None]:
    """Returns a model's plan; if it is not published or breaks a policy, the report as well."""
    try:
        return project.plan(name, environment, allow_unpublished=allow_unpublished), None
    except UserError as report:
        try:
            return project.unjudged.plan(name, environment, allow_unpublished=True), report
        except UserError:
            raise report from None


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


def plan_stack(
    scope: cdk.App, construct_id: str, *, plan: DeploymentPlan, env: cdk.Environment
) -> ModelStack:
    """Returns the stack of a plan: an endpoint, copies on another endpoint, or an adapter."""
    kind = EndpointStack if plan.host is None else AdapterStack if plan.is_adapter else GuestStack
    return kind(scope, construct_id, plan=plan, env=env)


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
    if any(list(rule(deployment)) for rule in ISOLATION):
        return None
    return ArtifactsStack(
        app,
        artifact_place(config, environment).stack_id,
        config=config,
        environment=environment,
        env=target,
    )


def _families(project: Project, name: str, environment: Environment) -> list[str]:
    """Returns the families whose images an unplannable model needs; none of an invalid config."""
    try:
        names = project.published_names(name, environment)
        found = [project.deployment(each, environment).image_family for each in names]
    except UserError:
        return []
    return [family for family in dict.fromkeys(found) if family is not None]


def _error_stack(
    app: cdk.App, name: str, environment: Environment, target: cdk.Environment, error: UserError
) -> cdk.Stack:
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
