"""`slipway local start|stop|status|env`: the embedded AWS."""

import contextlib
import shlex
from collections.abc import Iterator
from typing import Annotated

import typer

from slipway.cli.output import JsonOption, current_project, print_json
from slipway.codes.code import Code
from slipway.config.names import LOCAL
from slipway.errors import UserError

app = typer.Typer(
    help="The embedded AWS on this machine: no account, no Docker, no network.",
    no_args_is_help=True,
)
_GONE = "what was deployed and published there is gone"


@app.command()
def start(
    port: Annotated[
        int,
        typer.Option(
            help="Loopback port; 0 takes any free one.",
            min=0,
            max=65535,
            envvar="SLIPWAY_LOCAL_PORT",
        ),
    ] = 4566,
    as_json: JsonOption = False,
) -> None:
    """Start the embedded AWS, or find the running one."""
    from embedded_aws import control

    root = current_project().root
    with _user_errors():
        running = control.status(root)
        ended = control.ended_unasked(root)
        state = control.start(root, port=port)
    if as_json:
        print_json({"pid": state.pid, "url": state.url, "is_new": running is None})
        return
    if ended is not None:
        typer.echo(_loss(ended.pid))
    typer.echo(f"The embedded AWS answers at {state.url} (process {state.pid}).")
    if running is None:
        typer.echo(
            "Its account is empty: `cdk bootstrap`, `cdk deploy foundation` and `slipway publish` "
            "come first."
        )
    else:
        typer.echo("It was running already, and keeps what it has.")
    typer.echo('Point this shell at it: eval "$(slipway local env)"')


@app.command()
def stop() -> None:
    """Stop the embedded AWS and everything it serves; its account is lost."""
    from embedded_aws import control

    root = current_project().root
    with _user_errors():
        ended = control.ended_unasked(root)
        stopped = control.stop(root)
    if stopped:
        typer.echo(f"Stopped; {_GONE}. The next start begins with an empty account.")
        return
    typer.echo("It was not running.")
    if ended is not None:
        typer.echo(_loss(ended.pid))


@app.command()
def status(as_json: JsonOption = False) -> None:
    """Show whether the embedded AWS runs, and which endpoints it serves."""
    from embedded_aws import control

    root = current_project().root
    with _user_errors():
        found = control.status(root)
    if as_json:
        endpoints = [vars(endpoint) for endpoint in found.endpoints] if found else []
        state = {"pid": found.state.pid, "url": found.state.url} if found else {}
        print_json({"running": found is not None, **state, "endpoints": endpoints})
    elif found is None:
        ended = control.ended_unasked(root)
        if ended is not None:
            typer.echo(_loss(ended.pid))
        typer.echo("The embedded AWS is not running. Start it with `slipway local start`.")
    else:
        minutes = found.uptime_seconds / 60
        typer.echo(f"{found.state.url} (process {found.state.pid}), up {minutes:.0f} minutes")
        typer.echo(f"log: {found.log_file}")
        for endpoint in found.endpoints:
            typer.echo(f"{endpoint.name} in {endpoint.region}: {endpoint.status}")


@app.command("env")
def environment(as_json: JsonOption = False) -> None:
    """Print the variables that point AWS CLI, boto3, s5cmd and CDK CLI at it, for `eval`."""
    from slipway.access import local_variables

    project = current_project()
    variables = local_variables(project.root, project.environment(LOCAL).region)
    if as_json:
        print_json(variables)
        return
    for name, value in variables.items():
        line = f"unset {name}" if value is None else f"export {name}={shlex.quote(value)}"
        typer.echo(line)


def _loss(process: int) -> str:
    return f"Process {process} of the embedded AWS ended without `slipway local stop`; {_GONE}."


@contextlib.contextmanager
def _user_errors() -> Iterator[None]:
    """Turns errors of the embedded AWS, whose messages name the remedy, into `UserError`."""
    from embedded_aws.errors import LocalAwsError

    try:
        yield
    except LocalAwsError as error:
        raise UserError.of(
            Code.EMBEDDED_AWS_UNUSABLE, str(error), "docs/embedded-aws.md describes it."
        ) from None
