"""`slipway iam`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from slipway.cli import output

if TYPE_CHECKING:
    from slipway.planning.plan import ImagePlan


def iam(
    name: output.OptionalModelArgument = None,
    env: output.EnvironmentOption = output.DEFAULT_ENVIRONMENT,
    prune: Annotated[
        bool, typer.Option("--prune", help="Instead, the rights of `slipway prune --yes`.")
    ] = False,
    remote: Annotated[
        bool, typer.Option("--remote", help="The rights with `slipway publish NAME --remote`.")
    ] = False,
    execution_role: Annotated[
        bool,
        typer.Option(
            "--execution-role",
            help="Instead, the rights of the model's execution role, for an existing role.",
        ),
    ] = False,
    source: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="ENV",
            help="Instead, the rights of `slipway publish --from`, which promotes the model.",
        ),
    ] = None,
    image: Annotated[
        bool, typer.Option("--image", help="With `--from`: the rights of its `--image` too.")
    ] = False,
    endpoint: Annotated[
        str | None,
        typer.Option(
            "--import",
            metavar="ENDPOINT",
            help="Instead, the rights of `slipway import --endpoint ENDPOINT`.",
        ),
    ] = None,
) -> None:
    """Print the least IAM policy to publish, deploy, invoke and operate a model, as JSON."""
    from slipway.config.sections.artifacts import HubWeights
    from slipway.errors import UserError
    from slipway.planning.artifact_place import artifact_place
    from slipway.planning.promotion import same_environment
    from slipway.publishing.publish import planned_job
    from slipway.rights.commands import import_policy, promotion_policy, prune_policy, role_policy
    from slipway.rights.pipeline import least_policy

    if [name is not None, prune, endpoint is not None].count(True) != 1:
        raise typer.BadParameter("give the name of a model, or --prune, or --import")
    if source is not None and name is None:
        raise typer.BadParameter("--from goes with the name of a model")
    if image and source is None:
        raise typer.BadParameter("--image goes with --from")
    if remote and (name is None or source is not None):
        raise typer.BadParameter("--remote goes with the name of a model, without --from")
    if execution_role and (name is None or source is not None or remote):
        raise typer.BadParameter("--execution-role goes with the name of a model alone")
    project = output.current_project()
    environment = project.environment(env)
    if endpoint is not None:
        output.print_json(import_policy(environment, endpoint))
        return
    if name is None:
        output.print_json(prune_policy(environment))
        return
    if execution_role:
        plan = project.plan(name, environment, allow_unpublished=True)
        if plan.host is not None:
            # One role runs every copy on the endpoint.
            plan = project.plan(plan.host, environment, allow_unpublished=True)
        output.print_json(role_policy(plan, environment))
        return
    jobs = [
        planned_job(project, each, environment)
        for each in project.published_names(name, environment)
    ]
    if source is not None:
        tested = project.environment(source)
        if tested.name == environment.name:
            raise UserError([same_environment(name, tested.name)])
        images: list[tuple[ImagePlan, ImagePlan]] = []
        if image:
            to, of = (
                project.plan(name, each, allow_unpublished=True).every_served
                for each in (environment, tested)
            )
            images = [(ours.image, theirs.image) for ours, theirs in zip(to, of, strict=False)]
        output.print_json(
            promotion_policy(
                environment,
                artifact_place(project.config(name, environment.name).config, environment),
                source=tested,
                source_place=artifact_place(project.config(name, tested.name).config, tested),
                has_recipes=any(
                    compiling is not None or isinstance(weights, HubWeights)
                    for compiling, weights in jobs
                ),
                images=images,
            )
        )
        return
    plan = project.plan(name, environment, allow_unpublished=True)
    output.print_json(least_policy(plan, environment, jobs, remote=remote))
