"""`slipway dashboard`."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from slipway.cli.output import (
    DEFAULT_ENVIRONMENT,
    EnvironmentOption,
    ModelArgument,
    current_project,
    write_file,
)
from slipway.cli.status import status_rows, verdicts
from slipway.codes.code import Code
from slipway.errors import UserError

if TYPE_CHECKING:
    from slipway.operations.history import History
    from slipway.operations.status import Status
    from slipway.planning.consequences import Consequences

_STYLE = """\
body { margin: 1.5rem auto; max-width: 72rem; padding: 0 1rem; font: 15px/1.5 system-ui, sans-serif;
  color: #1f2730; background: #ffffff }
h1 { font-size: 1.4rem } h2 { font-size: 1.1rem }
th { text-align: left; font-weight: 600; padding-right: 1.5rem; vertical-align: top;
  white-space: nowrap }
td { overflow-wrap: anywhere }
code { font: 0.92em ui-monospace, monospace }
.trouble { color: #a93a22; font-weight: 600 }
.plots { display: grid; gap: 1rem;
  grid-template-columns: repeat(auto-fit, minmax(min(24rem, 100%), 1fr)) }
.plot { width: 100% }
@media (prefers-color-scheme: dark) {
  body { color: #e8edf2; background: #14191f }
  .trouble { color: #ff9d86 }
}
"""


def dashboard(
    name: ModelArgument,
    html: Annotated[Path, typer.Option("--html", help="File to write, over one of its name.")],
    hours: Annotated[
        int, typer.Option(help="How far back the plots go; 168 hours are a week.", min=1, max=168)
    ] = 1,
    env: EnvironmentOption = DEFAULT_ENVIRONMENT,
) -> None:
    """Write state, alarms and plots of an endpoint into one HTML file that needs no other."""
    from slipway.access import account_errors, open_access
    from slipway.operations.history import find_history
    from slipway.operations.status import find_model_status

    project = current_project()
    environment = project.environment(env)
    access = open_access(environment, project.root)
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
    write_file(html, as_page(title, found, unplanned, effects, history), str(html))
    typer.echo(f"{html}: {title}, {verdicts(found)[0][0]}")


def as_page(
    title: str,
    found: Status,
    unplanned: str | None,
    consequences: Consequences | None,
    history: History,
) -> str:
    """Returns an HTML page without a script and without an address that a browser loads."""
    from slipway.operations.plots import STYLE, as_svg

    lines = [f"<p{_kind(word)}>{word}: {_marked(text)}</p>" for word, text in verdicts(found)]
    rows = [_row(name, value) for name, value in status_rows(found, unplanned, consequences)]
    alarms = [
        _row("scaling" if each.scales else "alarm", f"{each.state} {each.name}: {each.reason}")
        for each in sorted(found.alarms, key=lambda each: each.state != "ALARM")
    ]
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            f'<head><meta charset="utf-8"><title>{escape(title)}</title>',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f"<style>\n{STYLE}{_STYLE}</style></head>",
            f"<body>\n<main>\n<h1>{escape(title)}</h1>",
            *lines,
            f"<p>{history.start:%Y-%m-%d %H:%M} to {history.end:%Y-%m-%d %H:%M} UTC, in steps of "
            f"{history.period_seconds // 60} min</p>",
            *_table("Alarms", alarms),
            '<h2>Plots</h2>\n<div class="plots">',
            *(as_svg(plot) for plot in history.plots()),
            "</div>",
            *_table("What is served", rows),
            "</main>\n</body>\n</html>\n",
        ]
    )


def _table(title: str, rows: list[str]) -> list[str]:
    return [f"<h2>{title}</h2>\n<table>", *rows, "</table>"] if rows else []


def _row(name: str, value: str) -> str:
    word = value.partition(" ")[0]
    return f"<tr><th scope=row>{escape(name)}</th><td{_kind(word)}>{_marked(value)}</td></tr>"


def _kind(word: str) -> str:
    return ' class="trouble"' if word in ("TROUBLE", "ALARM") else ""


def _marked(text: str) -> str:
    """Returns text with what stands between backticks as code."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", escape(text))
