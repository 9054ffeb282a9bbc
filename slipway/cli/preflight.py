"""`slipway preflight`."""

import typer

from slipway.cli import output
from slipway.config.names import LOCAL_PROGRAM_VARIABLE


def preflight(
    name: output.ModelArgument,
    env: output.EnvironmentOption = output.DEFAULT_ENVIRONMENT,
    as_json: output.JsonOption = False,
) -> None:
    """Check that the account is ready for a deployment; print a command for each missing part."""
    from slipway.access import account_errors, open_access, why_not_served
    from slipway.operations.preflight import compare_commits, notes
    from slipway.operations.preflight import preflight as check

    project = output.current_project()
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
        output.print_json({"checks": checks, "notes": told})
    else:
        for passed in checks:
            typer.echo(output.state(f"ok  {passed}"))
        for note in told:
            typer.echo(output.state(f"note  {note}"))
