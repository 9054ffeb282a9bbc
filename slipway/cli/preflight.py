"""`slipway preflight`."""

import typer

from slipway.cli.output import (
    DEFAULT_ENVIRONMENT,
    EnvironmentOption,
    JsonOption,
    ModelArgument,
    current_project,
    print_json,
    state,
)
from slipway.config.names import LOCAL_PROGRAM_VARIABLE


def preflight(
    name: ModelArgument,
    env: EnvironmentOption = DEFAULT_ENVIRONMENT,
    as_json: JsonOption = False,
) -> None:
    """Check that the account is ready for a deployment; print a command for each missing part."""
    from slipway.access import account_errors, open_access, why_not_served
    from slipway.operations.preflight import compare_commits, notes
    from slipway.operations.preflight import preflight as check

    project = current_project()
    environment = project.environment(env)
    plan = project.plan(name, environment)
    access = open_access(environment, project.root)
    refusal = None
    if environment.is_local and LOCAL_PROGRAM_VARIABLE not in plan.container_environment:
        backends = project.findings(project.deployment(name, environment)).backends
        refusal = why_not_served(project.root, plan.image.uri, backends)
    checks = check(
        plan,
        access,
        repository_key=environment.image_builds.repository_key,
        why_not_served=refusal,
    )
    with account_errors():
        told = [*notes(plan), *compare_commits(plan, access, project.root)]
    if as_json:
        print_json({"checks": checks, "notes": told})
    else:
        for passed in checks:
            typer.echo(state(f"ok  {passed}"))
        for note in told:
            typer.echo(state(f"note  {note}"))
