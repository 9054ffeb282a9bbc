"""`slipway status`: the first command to run when an endpoint has a problem."""

from __future__ import annotations

import re
import shutil
import sys
import textwrap
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from slipway.cli import output
from slipway.operations.log_text import readable

if TYPE_CHECKING:
    from slipway.deployed.traffic import Traffic
    from slipway.operations.status.report import EndpointStatus, Status
    from slipway.planning.consequences import Consequences


def status(
    name: output.ModelArgument,
    env: output.EnvironmentOption = output.DEFAULT_ENVIRONMENT,
    lines: Annotated[
        int, typer.Option(help="Number of the container's last log lines to show.", min=0, max=1000)
    ] = 10,
    as_json: output.JsonOption = False,
) -> None:
    """Show what an endpoint really serves, and its problems; exit 1 if there are any."""
    from slipway.access import account_errors
    from slipway.operations.status import find_model_status

    project, environment, access = output.opened(env)
    with account_errors():
        found, unplanned, effects = find_model_status(project, name, environment, access, lines)
    if as_json:
        output.print_json(
            {
                "troubles": found.troubles(),
                "notes": found.notes(),
                "in_progress": found.in_progress,
                **asdict(found),
                "unplanned": unplanned,
                "consequences": effects and asdict(effects),
            }
        )
    else:
        print_status(found, unplanned, effects)
    if found.troubles():
        raise typer.Exit(1)


def print_status(
    found: Status, unplanned: str | None, consequences: Consequences | None = None
) -> None:
    for line in _verdict(found):
        typer.echo(output.state(line))
    typer.echo()
    rows = status_rows(found, unplanned, consequences)
    widest = max((len(alarm.state) for alarm in found.alarms), default=0)
    for alarm in found.alarms:
        label = "scaling" if alarm.scales else "alarm"
        rows.append((label, f"{alarm.state:<{widest}}  {alarm.name}"))
    typer.echo(output.as_lines(rows))
    _print_log(found)


def status_rows(
    found: Status, unplanned: str | None, consequences: Consequences | None
) -> list[tuple[str, str]]:
    from slipway.planning.memory_estimate import counted

    endpoint, deployment = found.endpoint, found.deployment
    rows: list[tuple[str, str]] = []
    if endpoint is not None:
        shared = f" ({found.host}, of another model)" if found.host else ""
        rows.append(("endpoint", f"{endpoint.status} since {_moment(endpoint.changed)}{shared}"))
    if deployment is not None:
        protection = ", protected against deletion" if deployment.is_protected else ""
        since = _moment(deployment.changed)
        rows.append(("stack", f"{deployment.status} since {since}{protection}"))
    if endpoint is not None:
        rows += _served_rows(endpoint, found)
        if endpoint.answers is not None:
            rows.append(("mode", f"async: answers below {endpoint.answers}"))
        if unplanned is not None:
            rows.append(("files", f"no plan: {unplanned}"))
        for variant in endpoint.variants:
            if (sized := variant.serverless) is not None:
                warm = sized.get("ProvisionedConcurrency", 0)
                rows.append(
                    (
                        "serverless",
                        f"{sized['MemorySizeInMB']} MB, "
                        f"{counted(sized['MaxConcurrency'], 'request')} at most, "
                        f"{counted(warm, 'container')} kept started",
                    )
                )
                continue
            bounds = "fixed count" if endpoint.component is None else "as the copies need"
            if variant.min_instance_count is not None:
                bounds = f"scaled {variant.min_instance_count} to {variant.max_instance_count}"
                if variant.current_instance_count == variant.max_instance_count:
                    bounds += ", at the maximum"
            count = f"{variant.current_instance_count} of {variant.desired_instance_count}"
            types = ", or ".join(variant.instance_types) or "unknown"
            rows.append(("instances", f"{count} x {types} ({variant.name}, {bounds})"))
            rows += [("running", f"{n} x {name}") for name, n in variant.running.items()]
        if (component := endpoint.component) is not None:
            bounds = (
                "not scaled"
                if component.max_copies is None
                else f"{component.min_copies} to {component.max_copies}"
            )
            count = f"{component.current_copies} of {component.desired_copies}"
            rows.append(("copies", f"{count} ({component.status}, {bounds})"))
        if found.traffic is not None:
            rows.append(("last hour", _traffic(found.traffic)))
        if endpoint.others:
            rows.append(("beside", f"copies of {', '.join(endpoint.others)} on the same instances"))
        effects = consequences.effects if consequences else ()
        kinds = {each.setting: f" ({each.consequence})" for each in effects}
        for number, item in enumerate(found.differences):
            files = f"{item.files or 'not set'} in the files"
            deployed = f"{item.deployed or 'not set'} deployed"
            text = f"{item.setting}: {files}, {deployed}{kinds.get(item.setting, '')}"
            rows.append(("" if number else "files", text))
        if consequences is not None and effects:
            rows.append(next(consequences.as_rows()))
    return rows


def _traffic(traffic: Traffic) -> str:
    noun = "request" if traffic.request_count == 1 else "requests"
    text = f"{traffic.request_count:,} {noun}, {traffic.error_count:,} with 5XX"
    if traffic.p50_milliseconds is not None and traffic.p99_milliseconds is not None:
        text += f", p50 {traffic.p50_milliseconds:,.0f} ms, p99 {traffic.p99_milliseconds:,.0f} ms"
    return text


def _print_log(found: Status) -> None:
    if not found.log_lines:
        typer.echo(f"\nno log lines in {found.log_group}")
    stream = None
    for line in found.log_lines:
        if line.stream != stream:
            stream = line.stream
            typer.echo(f"\n{output.heading(f'{found.log_group} {stream}')}")
        typer.echo(f"  {line.at:%H:%M:%S} {readable(line.text)}")


def verdicts(found: Status) -> list[tuple[str, str]]:
    """Returns the verdict and its sentences, each behind its word."""
    if troubles := found.troubles():
        return [("TROUBLE", trouble) for trouble in troubles]
    if found.in_progress:
        what = "it is being deleted" if found.is_being_deleted else "a deployment is in progress"
        return [("CHANGING", what)]
    notes = [("NOTE", note) for note in found.notes()]
    return [("OK", "in service, on what its stack declares"), *notes]


def _verdict(found: Status) -> list[str]:
    lines = [f"{word}  {text}" for word, text in verdicts(found)]
    if found.troubles():
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 100
        indented = textwrap.TextWrapper(
            width=max(width, 60),
            subsequent_indent=" " * 9,
            break_long_words=False,
            break_on_hyphens=False,
        )
        # Addresses and commands are copied: none is broken over lines.
        indented.wordsep_simple_re = re.compile(r"(`[^`]*`\S*|\s+)")
        return [indented.fill(line) for line in lines]
    return lines


def _served_rows(endpoint: EndpointStatus, found: Status) -> list[tuple[str, str]]:
    """Returns rows for image and weights: live, then the stack's or the files' if they differ."""
    served, declared, planned = endpoint.served, found.declared, found.planned
    rows = [("config", served.config)]
    if declared is not None and declared.config != served.config:
        rows.append(("", f"the stack declares {declared.config}"))
    stack = (declared.image, declared.artifact) if declared else (None, None)
    files = (planned.image, planned.artifact) if planned else (None, None)
    for label, live, in_stack, in_files in zip(
        ("image", "weights"), (served.image, served.artifact), stack, files, strict=True
    ):
        rows.append((label, live or f"unknown: {served.gone or 'its model'} is not there"))
        if in_stack not in (None, live):
            rows.append(("", f"the stack declares {in_stack}"))
        if in_files not in (None, live):
            rows.append(("", f"the files say {in_files}: not deployed"))
    return rows


def _moment(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
