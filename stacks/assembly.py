"""Which stacks an app holds: the foundation and one per model.

One bad model never blocks another: it becomes an empty stack of its name that carries the whole
report as an error. Deploying, diffing and destroying the others works, selecting the bad one fails
with the report, and destroying it works too.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

import aws_cdk as cdk
from constructs import Node

from slipway.config.environments import LOCAL, Environment
from slipway.config.schema import is_model_name
from slipway.errors import UserError
from slipway.project import Project
from stacks.endpoint_stack import EndpointStack
from stacks.foundation_stack import FOUNDATION_ID, FoundationStack


@dataclass(frozen=True)
class Selection:
    """What was asked for on the command line, as CDK context.

    Args:
        environment: name of the environment.
        models: patterns (fnmatch) of the models to hold.
        allow_unpublished: synthesise models whose artifact does not exist.
    """

    environment: str = LOCAL
    models: Sequence[str] = ("*",)
    allow_unpublished: bool = False

    @classmethod
    def from_context(cls, node: Node) -> Selection:
        """Reads `env`, `models` and `allow-unpublished`.

        Raises:
            UserError: `models` names nothing, or `allow-unpublished` is neither true nor false.
        """
        models = str(node.try_get_context("models") or "*")
        allow = str(node.try_get_context("allow-unpublished") or "false").lower()
        if allow not in ("true", "false"):
            raise UserError.of(
                f"`-c allow-unpublished={allow}` is neither true nor false",
                "Write `-c allow-unpublished=true`, or leave it out.",
            )
        patterns = tuple(pattern.strip() for pattern in models.split(",") if pattern.strip())
        if not patterns:
            raise UserError.of(
                f"`-c models={models}` names no model",
                "Write names or patterns with commas between them, or leave it out.",
            )
        return cls(
            environment=str(node.try_get_context("env") or LOCAL),
            models=patterns,
            allow_unpublished=allow == "true",
        )


def add_stacks(app: cdk.App, project: Project, selection: Selection) -> None:
    """Adds the foundation and every selected model's stack to the app.

    Raises:
        UserError: the environment is wrong, or a pattern matches no model.
    """
    environment = project.environment(selection.environment)
    # A project without models is a new one: the foundation alone is what it deploys first.
    names = project.select(selection.models) if project.files else []
    target = cdk.Environment(account=environment.account, region=environment.region)
    foundation = FoundationStack(app, FOUNDATION_ID, environment=environment, env=target)
    for name in names:
        stack = _model_stack(app, project, name, environment, target, selection)
        stack.add_stack_dependency(foundation, "The model's files and alarms need it.")
        if _leaves_out_foundation(app.node):
            cdk.Annotations.of(stack).add_info(
                "Deployed without its foundation (--exclusively). Where that is not there yet, "
                f"run `cdk deploy {FOUNDATION_ID} -c env={environment.name}` first."
            )


def _leaves_out_foundation(node: Node) -> bool:
    """Whether `cdk deploy NAME --exclusively` was asked for: the CLI then names the stacks."""
    named = node.try_get_context("aws:cdk:bundling-stacks") or ["**"]
    return "**" not in named and not any(name.startswith(FOUNDATION_ID) for name in named)


def _model_stack(
    app: cdk.App,
    project: Project,
    name: str,
    environment: Environment,
    target: cdk.Environment,
    selection: Selection,
) -> cdk.Stack:
    try:
        plan = project.plan(name, environment, allow_unpublished=selection.allow_unpublished)
    except UserError as error:
        return _error_stack(app, name, environment, target, error)
    return EndpointStack(app, name, plan=plan, env=target)


def _error_stack(
    app: cdk.App, name: str, environment: Environment, target: cdk.Environment, error: UserError
) -> cdk.Stack:
    """Adds the empty stack that carries a report."""
    construct_id, stack_name = name, f"{name}-{environment.name}"
    if not is_model_name(name):
        # A file can be called what no stack can, or what another stack is: it gets names that
        # belong to nobody, lest destroying it destroy that one.
        unique = f"invalid-{hashlib.sha256(name.encode(errors='surrogateescape')).hexdigest()[:12]}"
        stack_name = f"{unique}-{environment.name}"
        construct_id = f"{name}.yaml" if re.fullmatch(r"[A-Za-z0-9][\w.-]*", name, re.A) else unique
    stack = cdk.Stack(app, construct_id, stack_name=stack_name, env=target)
    cdk.Annotations.of(stack).add_error(str(error))
    # That it is empty is the point; without this the CDK's own checks fail the whole synthesis.
    cdk.Validations.of(stack).acknowledge(
        cdk.Acknowledgment(
            id="CloudFormation-Validate::F0001", reason="Carries a report instead of resources."
        )
    )
    return stack
