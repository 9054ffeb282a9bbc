"""`slipway local start|stop|status|env`: the embedded AWS."""

from __future__ import annotations

import shlex
from typing import Annotated

import typer

from slipway.cli.output import JsonOption, current_project, print_json
from slipway.errors import UserError

app = typer.Typer(
    help="The embedded AWS on this machine: no account, no Docker, no network.",
    no_args_is_help=True,
)

_START = "Start it with `slipway local start`."


@app.command()
def start(
    port: Annotated[int, typer.Option(help="Loopback port.", min=1, max=65535)] = 4566,
    as_json: JsonOption = False,
) -> None:
    """Start it, or find it running."""
    from dataclasses import asdict

    from embedded_aws import control
    from embedded_aws.errors import LocalAwsError

    try:
        state = control.start(current_project().root, port=port)
    except LocalAwsError as error:
        raise UserError.of(str(error), "Choose another port with `--port`.") from None
    if as_json:
        print_json(asdict(state))
    else:
        typer.echo(f"The embedded AWS answers at {state.url} (process {state.pid}).")
        typer.echo('Point this shell at it: eval "$(slipway local env)"')


@app.command()
def stop() -> None:
    """Stop it and everything it serves; what was deployed and published there is gone."""
    from embedded_aws import control

    stopped = control.stop(current_project().root)
    typer.echo("Stopped; its state is gone." if stopped else "It was not running.")


@app.command()
def status(as_json: JsonOption = False) -> None:
    """Show whether it runs, and which endpoints it serves."""
    from embedded_aws import control

    report = control.status(current_project().root)
    if as_json:
        print_json(report)
        return
    if report is None:
        typer.echo(f"The embedded AWS is not running. {_START}")
        return
    typer.echo(f"{report['url']} (process {report['pid']})")
    for endpoint in report["endpoints"]:
        typer.echo(f"  {endpoint['name']}: {endpoint['status']}")


@app.command("env")
def environment(as_json: JsonOption = False) -> None:
    """Print what points the AWS CLI, boto3, s5cmd and the CDK CLI at it, for `eval`."""
    from embedded_aws import control

    state = control.running(current_project().root)
    if state is None:
        raise UserError.of("the embedded AWS is not running", _START)
    variables = control.environment(state)
    if as_json:
        print_json(variables)
        return
    for name, value in variables.items():
        line = f"unset {name}" if value is None else f"export {name}={shlex.quote(value)}"
        typer.echo(line)
