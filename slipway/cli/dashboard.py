"""`slipway dashboard`."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from slipway.cli import output
from slipway.cli.status import status_rows, verdicts
from slipway.codes.code import Code
from slipway.errors import UserError
from slipway.operations.page import html_page, marked
from slipway.operations.plots import as_svg

if TYPE_CHECKING:
    from slipway.operations.history import History
    from slipway.operations.status import Status
    from slipway.planning.consequences import Consequences

_STYLE = """\
th { text-align: left; font-weight: 600; padding-right: 1.5rem; vertical-align: top;
  white-space: nowrap }
td { overflow-wrap: anywhere }
"""


def dashboard(
    name: output.ModelArgument,
    html: Annotated[Path, typer.Option("--html", help="File to write, over one of its name.")],
    hours: Annotated[
        int, typer.Option(help="How far back the plots go; 168 hours are a week.", min=1, max=168)
    ] = 1,
    env: output.EnvironmentOption = output.DEFAULT_ENVIRONMENT,
) -> None:
    """Write state, alarms and plots of an endpoint into one HTML file that needs no other."""
    from slipway.access import account_errors
    from slipway.operations.history import find_history
    from slipway.operations.status import find_model_status

    project, environment, access = output.opened(env)
    with account_errors():
        found, unplanned, effects = find_model_status(project, name, environment, access, 0)
        if found.endpoint is None:
            raise UserError.of(
                Code.NOT_DEPLOYED,
                f"{name} has no endpoint in `{env}`, and therefore no plots",
                f"`slipway status {name} --env {env}` says what is there.",
            )
        history = find_history(access, found.endpoint, hours)
    title = f"{name} in {env}"
    output.write_file(html, as_page(title, found, unplanned, effects, history), str(html))
    typer.echo(f"{html}: {title}, {verdicts(found)[0][0]}")


def as_page(
    title: str,
    found: Status,
    unplanned: str | None,
    consequences: Consequences | None,
    history: History,
) -> str:
    lines = [f"<p{_kind(word)}>{word}: {marked(text)}</p>" for word, text in verdicts(found)]
    rows = [_row(name, value) for name, value in status_rows(found, unplanned, consequences)]
    alarms = [
        _row("scaling" if each.scales else "alarm", f"{each.state} {each.name}: {each.reason}")
        for each in sorted(found.alarms, key=lambda each: each.state != "ALARM")
    ]
    return html_page(
        title,
        _STYLE,
        [
            *lines,
            f"<p>{history.start:%Y-%m-%d %H:%M} to {history.end:%Y-%m-%d %H:%M} UTC, in steps of "
            f"{history.period_seconds // 60} min</p>",
            *_table("Alarms", alarms),
            '<h2>Plots</h2>\n<div class="plots">',
            *(as_svg(plot) for plot in history.plots()),
            "</div>",
            *_table("What is served", rows),
        ],
    )


def _table(title: str, rows: list[str]) -> list[str]:
    return [f"<h2>{title}</h2>\n<table>", *rows, "</table>"] if rows else []


def _row(name: str, value: str) -> str:
    word = value.partition(" ")[0]
    return f"<tr><th scope=row>{escape(name)}</th><td{_kind(word)}>{marked(value)}</td></tr>"


def _kind(word: str) -> str:
    return ' class="trouble"' if word in ("TROUBLE", "ALARM") else ""
