"""`slipway leftovers`."""

from contextlib import suppress
from dataclasses import asdict
from typing import Annotated

import typer

from slipway.cli import output
from slipway.errors import UserError


def leftovers(
    name: Annotated[
        str | None,
        typer.Argument(
            help="Name of the model. Without it: the stacks of models without a file.",
            autocompletion=output.model_names,
        ),
    ] = None,
    env: output.EnvironmentOption = output.DEFAULT_ENVIRONMENT,
    as_json: output.JsonOption = False,
) -> None:
    """List resources that a destroyed model left in the account; exit 3 if there are any."""
    from slipway.access import account_errors
    from slipway.operations.leftovers import find_kept, find_leftovers, find_stacks

    project, environment, access = output.opened(env)
    nothing = f"Every model that has a stack in {env} has its file."
    with account_errors():
        if name is None:
            found, kept = list(find_stacks(environment, access, project.files)), []
        else:
            config = None
            with suppress(UserError):  # its file may be removed, or be in the middle of a change
                config = project.config(name, env).config
            found = find_leftovers(name, environment, access, config)
            kept = find_kept(name, environment, access)
            nothing = (
                f"Nothing is left of {name} in {env}: no endpoint, config, model, alarm, scalable "
                "target or log group."
            )
            if config is None:
                nothing += " Without a valid file, its network and key were not looked at."
    if as_json:
        output.print_json(
            {
                "leftovers": [asdict(item) for item in found],
                "kept": [asdict(item) for item in kept],
            }
        )
    elif not found:
        typer.echo(nothing)
    for item in [] if as_json else found:
        typer.echo(f"{item.kind}: {item.name}{f', {item.note}' if item.note else ''}")
    for item in [] if as_json else kept:
        typer.echo(f"kept on purpose, {item.kind}: {item.name}")
    if found:
        raise typer.Exit(output.ANSWER_IS_NO)
