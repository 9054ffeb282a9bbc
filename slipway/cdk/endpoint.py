"""An endpoint in a stack of a team's own."""

from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from slipway.cdk.app import App, stacks_of
from slipway.cdk.invocable import Invocable, refused
from slipway.codes.code import Code
from slipway.config.environments import Environment
from slipway.config.names import LOCAL
from slipway.errors import UserError
from slipway.planning.plan import DeploymentPlan
from slipway.project import Project
from slipway.stacks.assembly import plan_and_report
from slipway.stacks.endpoint_stack import add_endpoint
from slipway.stacks.model_stack import ModelResources


class Endpoint(Construct, Invocable):
    """A model's endpoint, with all resources of the stack that a model has otherwise.

    In a `slipway.cdk.App` it takes the place of the model's own stack. The stack around it then
    depends on the foundation, the image and the key that the model needs. In another
    `aws_cdk.App` only the endpoint's resources are added. The foundation of the environment has to
    be deployed before, from a project that has the same environment: its parameters below
    `/slipway/` name the artifact key, the topic of alarms and the security group.

    A model that cannot be deployed leaves its report at the construct: it is not published, its
    config has problems, or its copies run on the endpoint of another model. The CDK CLI then
    refuses to deploy this stack, and no other.

    Args:
        config: name of a model of the app's project, or path of its YAML file in model_configs/.
            Relative paths count from the project's folder, or from the current one if the app is
            no `slipway.cdk.App`.
        environment: name in environments.yaml. Without it, the app's: `-c env=NAME`, or `local`.

    Raises:
        UserError: there is no such model or environment, the stack is in another account or
            region, or the model has an endpoint in this app already.

    Example:
        An endpoint beside the function that calls it::

            stack = cdk.Stack(app, "answers", env=app.env)
            endpoint = Endpoint(stack, "chat", config="chat")
            endpoint.grant_invoke(function)
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        config: str | Path,
        environment: str | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        app = scope.node.root
        stacks = stacks_of(app) if isinstance(app, App) else None
        allows = False
        if stacks is None:
            project = Project.find(Path(config).resolve().parent)
            named = environment or str(self.node.try_get_context("env") or LOCAL)
            there = project.environment(named)
        else:
            project, there = stacks.project, stacks.environment
            allows = stacks.selection.allow_unpublished
            _check_environment(environment, there)
        name = _model_name(project, config, Path() if stacks is None else project.root)
        stack = cdk.Stack.of(self)
        _check_place(stack, there)
        if stacks is not None and name in stacks.alarms:
            raise refused(
                Code.MADE_TWICE,
                f"the model {name} has an endpoint in this app already",
                "Keep one of them. If only its alarms were used before, make this one first.",
            )
        self._made: list[cloudwatch.CfnAlarm] = []
        self._own_plan: DeploymentPlan | UserError
        report: UserError | None
        try:
            self._own_plan, report = plan_and_report(project, name, there, allows)
            self._add(self._own_plan, stack)
        except UserError as error:
            self._own_plan = report = error
        if report is not None:
            cdk.Annotations.of(self).add_error(str(report))
        if stacks is not None:
            planned = None if isinstance(self._own_plan, UserError) else self._own_plan
            stacks.include(name, stack, planned, self._made)

    def _add(self, plan: DeploymentPlan, stack: cdk.Stack) -> None:
        if plan.host is not None:
            raise refused(
                Code.NOT_FOR_ENDPOINT,
                f"the copies of {plan.config.name} run on the endpoint of {plan.host}, and an "
                "`Endpoint` makes one of its own",
                "Leave the model to its own stack, and use `app.models` for what calls it.",
            )
        self._made = add_endpoint(ModelResources(self, plan))
        if plan.config.endpoint.termination_protection:
            stack.termination_protection = True

    @property
    def _plan(self) -> DeploymentPlan:  # type: ignore[override]  # never written
        if isinstance(self._own_plan, UserError):
            raise self._own_plan
        return self._own_plan

    def _alarms(self) -> list[cloudwatch.CfnAlarm]:
        return self._made if self._plan else []


def _model_name(project: Project, config: str | Path, base: Path) -> str:
    """Returns the model that a name or a path means; raises `UserError` if there is none."""
    if str(config) in project.files:
        return str(config)
    path = (base / config).resolve()
    for name, file in project.files.items():
        if file.resolve() == path:
            return name
    if path.is_file():
        raise refused(
            Code.NOT_FOR_ENDPOINT,
            f"{path} is no config of the project in {project.root}, so nothing can publish it",
            f"Move it to {project.root}/model_configs/.",
        )
    raise project.unknown(str(config))


def _check_environment(asked: str | None, there: Environment) -> None:
    if asked not in (None, there.name):
        raise refused(
            Code.STACK_ELSEWHERE,
            f"`environment={asked!r}` is not the environment of this app, which is {there.name}",
            f"Leave it out, or select it for the whole app with `-c env={asked}`.",
        )


def _check_place(stack: cdk.Stack, environment: Environment) -> None:
    if stack.nested_stack_parent is not None:
        raise refused(
            Code.NOT_FOR_ENDPOINT,
            f"{stack.node.path} is a nested stack, whose name only CloudFormation knows, and the "
            "rights of an endpoint name its stack's alarms",
            "Make the `Endpoint` in a stack of the app.",
        )
    found = (stack.account, stack.region)
    if found != (environment.account, environment.region):
        shown = "/".join("any" if cdk.Token.is_unresolved(part) else part for part in found)
        raise refused(
            Code.STACK_ELSEWHERE,
            f"the stack {stack.node.path} is for {shown}, and the environment "
            f"{environment.name} is {environment.account}/{environment.region}",
            "Give the stack the account and region of the environment: `env=app.env`.",
        )
