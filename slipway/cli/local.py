"""`slipway local start|stop|status|pass-minutes|env`: the embedded AWS."""

import contextlib
import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from slipway.cli import output
from slipway.codes.code import Code
from slipway.config.names import LOCAL
from slipway.embedded_aws.reported_refusals import ReportedRefusal
from slipway.errors import UserError, did_you_mean
from slipway.extras import require

if TYPE_CHECKING:
    from pathlib import Path

    from slipway.embedded_aws.control import AccountTime, LocalState

app = typer.Typer(
    help="The embedded AWS on this machine: no account, no network, and no Docker unless you ask.",
    no_args_is_help=True,
)
_GONE = "what was deployed and published there is gone"


@app.command()
def start(
    port: Annotated[
        int | None,
        typer.Option(
            help="Loopback port; 0 takes any free one. Default: 4566. Exit 3 if it runs on "
            "another.",
            min=0,
            max=65535,
            envvar="SLIPWAY_LOCAL_PORT",
        ),
    ] = None,
    containers: Annotated[
        bool,
        typer.Option(
            "--containers",
            help="Run endpoints in the images of `make images`, with a container engine.",
        ),
    ] = False,
    refuse: Annotated[
        list[ReportedRefusal] | None,
        typer.Option(
            help="Refuse a number of 0 that public reports saw refused, and AWS documents; may be "
            "repeated."
        ),
    ] = None,
    without_capacity: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TYPE",
            help="Have no capacity of this instance type, such as ml.g5.xlarge; may be repeated.",
        ),
    ] = None,
    record: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TYPE",
            help="Deploy resources of a type that the embedded AWS does not know, such as "
            "AWS::SQS::Queue or AWS::ApiGateway::*, without making any; may be repeated.",
        ),
    ] = None,
    as_json: output.JsonOption = False,
) -> None:
    """Start the embedded AWS, or find the running one."""
    from slipway.embedded_aws import control

    root = output.current_project().root
    require("local", "the embedded AWS")
    with _user_errors():
        running = control.status(root)
        ended = control.ended_unasked(root)
        state = control.start(
            root,
            port=control.DEFAULT_PORT if port is None else port,
            containers=containers,
            refuse=refuse or (),
            without_capacity=_known_types(without_capacity or ()),
            record=_resource_types(record or ()),
        )
    if port and state.port != port:
        output.print_error(_other_port(state.port, port), as_json=as_json)
        raise typer.Exit(output.ANSWER_IS_NO)
    if as_json:
        found = {"pid": state.pid, "url": state.url, **_settings(state)}
        output.print_json({**found, "is_new": running is None})
        return
    if ended is not None:
        typer.echo(_loss(ended.pid))
    typer.echo(f"The embedded AWS answers at {state.url} (process {state.pid}).")
    _print_settings(state)
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
    from slipway.embedded_aws import control

    root = output.current_project().root
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
def status(as_json: output.JsonOption = False) -> None:
    """Show whether the embedded AWS runs, and which endpoints it serves; exit 3 if it does not."""
    from slipway.embedded_aws import control

    root = output.current_project().root
    with _user_errors():
        found = control.status(root)
    if as_json:
        endpoints = [vars(endpoint) for endpoint in found.endpoints] if found else []
        state = (
            {
                "pid": found.state.pid,
                "url": found.state.url,
                "clock_ahead_seconds": round(found.ahead_seconds, 3),
                **_settings(found.state),
            }
            if found
            else {}
        )
        output.print_json({"running": found is not None, **state, "endpoints": endpoints})
    elif found is None:
        ended = control.ended_unasked(root)
        if ended is not None:
            typer.echo(_loss(ended.pid))
        typer.echo("The embedded AWS is not running. Start it with `slipway local start`.")
    else:
        minutes = found.uptime_seconds / 60
        typer.echo(f"{found.state.url} (process {found.state.pid}), up {minutes:.0f} minutes")
        typer.echo(f"log: {found.log_file}")
        if found.ahead_seconds:
            typer.echo(f"clock: {_ahead(found.ahead_seconds)}")
        _print_settings(found.state)
        for endpoint in found.endpoints:
            typer.echo(f"{endpoint.name} in {endpoint.region}: {endpoint.status}")
    if found is None:
        raise typer.Exit(output.ANSWER_IS_NO)


@app.command("pass-minutes")
def pass_minutes(
    minutes: Annotated[int, typer.Argument(help="How many, one after the other.", min=1)],
    as_json: output.JsonOption = False,
) -> None:
    """Let minutes pass at once: alarms, policies and schedules do what is due in each of them."""
    root = output.current_project().root
    show_progress = not as_json and sys.stderr.isatty()
    for minute in range(1, minutes + 1):
        time = _pass_minute(root)
        if show_progress:
            end = "\n" if minute == minutes else "\r"
            sys.stderr.write(f"minute {minute} of {minutes}{end}")
            sys.stderr.flush()
    if as_json:
        output.print_json(
            {
                "now": time.now.isoformat(timespec="seconds"),
                "clock_ahead_seconds": round(time.ahead_seconds, 3),
            }
        )
        return
    typer.echo(f"It is {time.now:%Y-%m-%d %H:%M} UTC in the account, {_ahead(time.ahead_seconds)}.")


@app.command("env")
def environment(as_json: output.JsonOption = False) -> None:
    """Print the variables that point AWS CLI, boto3, s5cmd and CDK CLI at it, for `eval`."""
    from slipway.access import local_variables

    project = output.current_project()
    variables = local_variables(project.root, project.environment(LOCAL).region)
    if as_json:
        output.print_json(variables)
        return
    for name, value in variables.items():
        line = f"unset {name}" if value is None else f"export {name}={shlex.quote(value)}"
        typer.echo(line)


def _pass_minute(root: "Path") -> "AccountTime":
    from slipway.embedded_aws import control

    with _user_errors():
        time = control.pass_minute(root)
    if time is None:
        raise UserError.of(
            Code.EMBEDDED_AWS_NOT_RUNNING,
            "the embedded AWS is not running",
            "Start it with `slipway local start`.",
        )
    return time


def _ahead(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"{minutes} minute{'s' if minutes != 1 else ''} ahead of this machine"


def _settings(state: "LocalState") -> dict[str, object]:
    return {
        "engine": state.engine,
        "refused": list(state.refused),
        "without_capacity": list(state.without_capacity),
        "recorded": list(state.recorded),
    }


def _print_settings(state: "LocalState") -> None:
    if state.engine is not None:
        typer.echo(f"Endpoints run in their images. The engine is {state.engine}.")
    if state.refused:
        typer.echo(f"It also refuses: {', '.join(state.refused)}.")
    if state.without_capacity:
        typer.echo(f"It has no capacity of: {', '.join(state.without_capacity)}.")
    if state.recorded:
        typer.echo(f"It records without making any: {', '.join(state.recorded)}.")


def _resource_types(patterns: Sequence[str]) -> Sequence[str]:
    form = re.compile(r"[A-Za-z0-9*]+(::[A-Za-z0-9*]+){1,2}")
    wrong = [each for each in patterns if not form.fullmatch(each)]
    if wrong:
        raise output.wrong_options(
            f"not a resource type: {', '.join(wrong)}",
            "Write it as in a template, such as AWS::SQS::Queue or AWS::SQS::*.",
        )
    return patterns


def _known_types(names: Sequence[str]) -> Sequence[str]:
    from slipway.facts.instances import instance_types

    unknown = [name for name in names if name not in instance_types()]
    if unknown:
        raise output.wrong_options(
            f"not a known hosting instance type: {', '.join(unknown)}",
            did_you_mean(unknown[0], instance_types()).rstrip()
            or "slipway/facts/instances.json lists them.",
        )
    return names


def _other_port(running: int, asked: int) -> UserError:
    return UserError.of(
        Code.LOCAL_PORT,
        f"the embedded AWS of this project is running on port {running}, not on {asked}",
        f"Use it there, or run `slipway local stop` and `slipway local start --port {asked}`; "
        f"{_GONE} then.",
    )


def _loss(process: int) -> str:
    return f"Process {process} of the embedded AWS ended without `slipway local stop`; {_GONE}."


@contextlib.contextmanager
def _user_errors() -> Iterator[None]:
    """Turns errors of the embedded AWS, whose messages name the remedy, into `UserError`."""
    from slipway.embedded_aws.containers.engine import NoEngineError
    from slipway.embedded_aws.errors import LocalAwsError

    try:
        yield
    except NoEngineError as error:
        raise UserError.of(
            Code.NO_CONTAINER_ENGINE,
            str(error),
            "Start Docker, or run `make images` as root on Debian, which installs an engine. "
            "Without `--containers`, endpoints run as processes.",
        ) from None
    except LocalAwsError as error:
        raise UserError.of(
            Code.EMBEDDED_AWS_UNUSABLE, str(error), "docs/embedded-aws.md describes it."
        ) from None
