"""`slipway list`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from slipway.cli import output
from slipway.config.names import CI
from slipway.errors import UserError

if TYPE_CHECKING:
    from slipway.operations.fleet import Fleet, FleetRow
    from slipway.project import Project

FLEET_HEAD = (
    "model", "environment", "state", "serves", "instances", "requests", "5XX", "p50", "p99",
    "USD a month", "remarks",
)  # fmt: skip
# Columns of numbers.
_RIGHT = frozenset({"requests", "5XX", "p50", "p99", "USD a month"})


def list_models(
    env: output.AnyEnvironmentOption = None, as_json: output.JsonOption = False
) -> None:
    """Show every model and what it serves, its last hour, its alarms and its cost."""
    project = output.current_project()
    names = [env] if env else [each for each in project.environment_names if each != CI]
    fleets: list[Fleet] = []
    unseen: dict[str, str] = {}
    closed: list[UserError] = []
    for name in names:
        try:
            fleets.append(fleet := _look(project, name))
            unseen |= {f"{what} in `{name}`": why for what, why in fleet.unseen.items()}
        except UserError as error:
            closed.append(error)
    if not fleets:
        raise UserError([problem for error in closed for problem in error.problems])
    problems = [problem for error in closed for problem in error.problems]
    rows = [row for fleet in fleets for row in fleet.rows]
    if as_json:
        shown = [problem.as_json() for problem in problems]
        output.print_json(
            {"models": [asdict(row) for row in rows], "unseen": unseen, "problems": shown}
        )
        return
    typer.echo(as_table(rows) if rows else "No model is deployed.")
    if any(row.is_trouble for row in rows):
        troubled = ", ".join(dict.fromkeys(row.model for row in rows if row.is_trouble))
        typer.echo(f"trouble: {troubled}; `slipway status NAME --env ENV` says what to do")
    for what, why in unseen.items():
        typer.echo(output.state(f"not seen: {what}: {why}", sys.stderr), err=True)
    for problem in problems:
        typer.echo(
            output.state(f"not seen: {problem.message} [{problem.code}]", sys.stderr), err=True
        )


def _look(project: Project, name: str) -> Fleet:
    from slipway.access import account_errors, open_access
    from slipway.operations.fleet import find_fleet

    environment = project.environment(name)
    access = open_access(environment, project.root)
    with account_errors():
        return find_fleet(project, environment, access)


def fleet_cells(row: FleetRow) -> Sequence[str]:
    traffic = row.traffic
    serves = {None: "", True: "the files", False: "other files"}[row.serves_files]
    return (
        row.model,
        row.environment,
        row.state,
        serves,
        row.instances or "",
        f"{traffic.request_count:,}" if traffic else "",
        f"{traffic.error_count:,}" if traffic else "",
        _milliseconds(traffic.p50_milliseconds if traffic else None),
        _milliseconds(traffic.p99_milliseconds if traffic else None),
        _usd(row),
        "; ".join(_remarks(row)),
    )


def _milliseconds(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f} ms"


def _usd(row: FleetRow) -> str:
    if row.usd_per_month is not None:
        return f"{row.usd_per_month:,.0f}"
    known = row.usd_known_per_month
    return "" if known is None else f"{known:,.0f} + unknown"


def _remarks(row: FleetRow) -> Iterator[str]:
    if row.reason:
        yield row.reason
    yield from (f"alarm {name}" for name in row.alarms)
    if row.at_maximum:
        yield "at its maximum"
    if row.idle_days is not None:
        yield f"no request for {row.idle_days} days"
    if not row.has_file:
        yield f"no model_configs/{row.model}.yaml"


def as_table(rows: Sequence[FleetRow]) -> str:
    """Returns columns side by side; one that is empty but for its head is left out."""
    lines = [FLEET_HEAD, *(fleet_cells(row) for row in rows)]
    columns = [column for column in zip(*lines, strict=True) if any(column[1:])]
    widths = [max(map(len, column)) for column in columns]
    shown = (
        "  ".join(
            cell.rjust(width)
            if column[0] in _RIGHT
            # Colours have no width.
            else (output.state(cell) if column[0] == "state" else cell) + " " * (width - len(cell))
            for cell, width, column in zip(line, widths, columns, strict=True)
        ).rstrip()
        for line in zip(*columns, strict=True)
    )
    return "\n".join((output.heading(next(shown)), *shown))
