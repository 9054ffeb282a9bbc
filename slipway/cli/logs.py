"""`slipway logs`."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from slipway.cli import output
from slipway.codes.code import Code
from slipway.errors import UserError
from slipway.operations.log_text import readable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from slipway.operations.logs import LogEvent

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
# CloudWatch keeps no line longer, unless it keeps it for ever.
_LONGEST = timedelta(days=3653)


def logs(
    name: output.ModelArgument,
    env: output.EnvironmentOption = output.DEFAULT_ENVIRONMENT,
    since: Annotated[
        str, typer.Option(help="How far back: a number with `s`, `m`, `h` or `d`.")
    ] = "15m",
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on with the lines that come.")
    ] = False,
    errors: Annotated[
        bool, typer.Option("--errors", help="Only lines that tell of an error.")
    ] = False,
    as_json: output.JsonOption = False,
) -> None:
    """Show what a model's containers wrote; `--json` prints a document for each line."""
    from slipway.access import account_errors
    from slipway.deployed.traffic import account_time
    from slipway.operations.logs import find_groups, follow_log, read_log

    length = length_of(since)
    project, environment, access = output.opened(env)
    with account_errors():
        # The copies of its base write an adapter's lines.
        writer = project.base_named_in(name) or name
        client, stack = access.client("logs"), environment.stack_name(writer)
        groups = find_groups(client, stack)
        if not groups:
            raise UserError.of(
                Code.NOT_DEPLOYED,
                f"{name} has no log in `{env}`: there is no log group of {stack}",
                f"`slipway status {name} --env {env}` says what is deployed.",
            )
        start = account_time(access.client("sts")) - length
        if follow:
            _print(follow_log(client, groups[0], start), errors=errors, as_json=as_json)
        for group in groups:
            _print(read_log(client, group, start), errors=errors, as_json=as_json)


def length_of(text: str, longest: timedelta = _LONGEST) -> timedelta:
    """Returns the time that `--since` names; raises `UserError` if it is none, or is too long."""
    match = re.fullmatch(r"(\d{1,6})([smhd])", text)
    length = timedelta(**{_UNITS[match[2]]: int(match[1])}) if match else longest
    if match is None or length > longest:
        raise output.wrong_options(
            f"`--since {text}` is no length of time of at most {longest.days} days",
            "Write a number with its unit, such as `90s`, `15m`, `2h` or `3d`.",
        )
    return length


def _print(lines: Iterable[LogEvent], *, errors: bool, as_json: bool) -> None:
    stream = None
    for line in lines:
        if errors and not line.is_error:
            continue
        if as_json:
            shown = asdict(line) | {"at": line.at.isoformat(timespec="milliseconds")}
            typer.echo(json.dumps(shown, ensure_ascii=False))
            continue
        if line.stream != stream:
            stream = line.stream
            typer.echo(f"{line.group} {stream}")
        typer.echo(f"  {line.at:%H:%M:%S} {readable(line.text)}")
