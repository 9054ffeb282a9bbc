"""`slipway shadow-report`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from slipway.cli import output
from slipway.cli.logs import length_of
from slipway.operations.log_text import readable


def shadow_report(
    name: output.ModelArgument,
    env: output.EnvironmentOption = output.DEFAULT_ENVIRONMENT,
    since: Annotated[
        str, typer.Option(help="How far back: a number with `s`, `m`, `h` or `d`.")
    ] = "1d",
    as_json: output.JsonOption = False,
) -> None:
    """Compare a shadow's captured answers and its latency with the production variant's."""
    from slipway.access import account_errors
    from slipway.operations import shadow_report as operation

    length = length_of(since, operation.LONGEST)
    project, environment, access = output.opened(env)
    with account_errors():
        found = operation.shadow_report(project, name, environment, access, length)
    if as_json:
        output.print_json(asdict(found))
        return
    by_id = found.paired_by_inference_id
    rows = [
        (
            "compared",
            f"{found.compared:,} request{'s' * (found.compared != 1)} of the last {since}: "
            f"{by_id:,} paired by inference id, {found.compared - by_id:,} by their bytes",
        ),
        ("unpaired", " and ".join(f"{n:,} of {variant}" for variant, n in found.unpaired.items())),
        (
            "equal",
            f"{found.equal:,} of {found.compared:,} answers ({found.equal / found.compared:.1%})",
        ),
    ]
    for variant, times in found.latency_milliseconds.items():
        known = (f"{each} {ms:,.1f} ms" for each, ms in times.items() if ms is not None)
        rows.append((variant, f"ModelLatency {', '.join(known) or 'unknown'}"))
    typer.echo(output.as_lines(rows))
    for each in found.differences:
        typer.echo(f"\nanswers differ{' at ' * bool(each.field)}{readable(each.field)}")
        for place, text in each.answers.items():
            typer.echo(f"  {readable(text)}\n    {place}")
