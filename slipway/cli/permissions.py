"""`slipway iam`."""

from typing import Annotated

import typer

from slipway.cli.output import (
    DEFAULT_ENVIRONMENT,
    EnvironmentOption,
    current_project,
    print_json,
)


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("iam")(iam)


def iam(
    name: Annotated[str, typer.Argument(help="Name of the model.")],
    env: EnvironmentOption = DEFAULT_ENVIRONMENT,
) -> None:
    """Print the least IAM policy to publish, deploy, invoke and operate a model, as JSON."""
    from slipway.operations.permissions import least_policy
    from slipway.publishing.publish import planned_job

    project = current_project()
    environment = project.environment(env)
    plan = project.plan(name, environment, allow_unpublished=True)
    compiling, weights = planned_job(project, name, environment)
    print_json(least_policy(plan, environment, compiling=compiling, weights=weights))
