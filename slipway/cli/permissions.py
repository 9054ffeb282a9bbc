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
    name: Annotated[str | None, typer.Argument(help="Name of the model.")] = None,
    env: EnvironmentOption = DEFAULT_ENVIRONMENT,
    prune: Annotated[
        bool, typer.Option("--prune", help="Instead, the rights of `slipway prune --yes`.")
    ] = False,
    remote: Annotated[
        bool, typer.Option("--remote", help="The rights with `slipway publish NAME --remote`.")
    ] = False,
) -> None:
    """Print the least IAM policy to publish, deploy, invoke and operate a model, as JSON."""
    from slipway.operations.permissions import least_policy
    from slipway.operations.prune_permissions import prune_policy
    from slipway.publishing.publish import planned_job

    if (name is None) != prune:
        raise typer.BadParameter("give the name of a model, or --prune")
    if remote and prune:
        raise typer.BadParameter("--remote goes with the name of a model")
    project = current_project()
    environment = project.environment(env)
    if name is None:
        print_json(prune_policy(environment))
        return
    plan = project.plan(name, environment, allow_unpublished=True)
    compiling, weights = planned_job(project, name, environment)
    policy = least_policy(plan, environment, compiling=compiling, weights=weights, remote=remote)
    print_json(policy)
