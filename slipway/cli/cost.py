"""`slipway cost`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from slipway.cli.output import (
    AnyEnvironmentOption,
    JsonOption,
    as_lines,
    current_project,
    model_names,
    print_json,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slipway.config.environments import Environment
    from slipway.errors import Problem
    from slipway.planning.bill import Bill, Item
    from slipway.project import Project
    from slipway.sizing.performance import Known


def cost(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Names of models. Default: all.", autocompletion=model_names),
    ] = None,
    env: AnyEnvironmentOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what models cost an hour and a month, by item, with the source of each price."""
    from slipway.errors import UserError
    from slipway.planning.bill import bill_of
    from slipway.sizing.performance import performance_of

    project = current_project()
    bills: list[tuple[Bill, Known]] = []
    problems: list[Problem] = []
    for name in names or project.files:
        try:
            for each in _environments(project, name, env, is_named=bool(names)):
                plan = project.plan(name, each, allow_unpublished=True)
                bills.append((bill_of(plan), performance_of(plan, project.measurement(name))))
        except UserError as error:
            problems += error.problems
    if problems:
        raise UserError(problems)
    if as_json:
        found = [bill.as_json() | {"per_million": per_million(bill, k)} for bill, k in bills]
        print_json({"bills": found})
        return
    texts = [describe(bill, known) for bill, known in bills]
    typer.echo("\n\n".join(texts) or "No environment but `local` and `ci` deploys one.")


def _environments(
    project: Project, name: str, env: str | None, *, is_named: bool
) -> list[Environment]:
    """Returns the environments whose bill is asked for: those that deploy the model."""
    from slipway.config.names import CI, LOCAL

    if env is not None and is_named:
        return [project.environment(env)]
    deploying = project.deploying_environments(name)
    if env is not None:
        return [each for each in deploying if each.name == env]
    # Nothing is billed on a laptop, and nobody deploys to the environment of CI. Without another
    # one, a model that is asked for costs what it would there.
    billed = [each for each in deploying if each.name not in (CI, LOCAL)]
    return billed or (deploying if is_named else [])


def per_million(bill: Bill, known: Known) -> dict[str, Any]:
    """Returns what a million requests and tokens cost on busy instances; null where unknown."""
    load, price = known.load, next(iter(bill.cost.hourly), None)
    requests = tokens = None
    if load is not None and price is not None and price.usd is not None:
        rate = load.requests_per_second
        least, most = load.least_requests_per_second, load.most_requests_per_second
        rates = {"low": most or rate, "expected": rate, "high": least or rate}
        requests = {name: round(price.usd / each / 3600 * 1e6, 4) for name, each in rates.items()}
        if load.tokens:
            tokens = {name: round(usd / load.tokens, 4) for name, usd in requests.items()}
    found = {"basis": known.basis, "origin": known.origin, "reasons": list(known.reasons)}
    return found | {"requests": requests, "tokens": tokens}


def describe(bill: Bill, known: Known) -> str:
    """Returns a bill as a person reads it."""
    rows = [*_rows(bill), *_use(per_million(bill, known)), *_sources(bill)]
    return f"{bill.model} in {bill.environment}, {bill.cost.region}\n" + as_lines(rows)


def _use(found: dict[str, Any]) -> Iterator[tuple[str, str]]:
    reasons = "; ".join(found["reasons"])
    for what in ("requests", "tokens"):
        usd = found[what]
        if usd is not None:
            low, expected, high = (f"{usd[each]:,.2f}" for each in ("low", "expected", "high"))
            band = "" if low == high else f" [{low} to {high}]"
            yield f"  a million {what}", f"{expected}{band} USD while busy"
        elif what == "requests":
            yield f"  a million {what}", f"unknown: {reasons or 'the price is unknown'}"
    if found["basis"] is not None:
        yield "  that is", found["origin"]
        if reasons:
            yield "  measurement", f"not used: {reasons}"


def _rows(bill: Bill) -> Iterator[tuple[str, str]]:
    from slipway.cli.costs import bounds, describe_dashboard

    cost = bill.cost
    each = ", ".join(f"{hourly.instance_type} {_usd(hourly.usd)}" for hourly in cost.hourly)
    # A model without instances of its own is in the bill of its host.
    yield "  an hour", f"{bounds(bill.usd_per_hour)} ({each or 'on the instances of its host'})"
    yield "  a month", bounds(cost.instances)
    if cost.volumes is not None:
        yield "  volumes", bounds(cost.volumes)
    for item in bill.items:
        yield f"  {item.name}", _item(item)
    if cost.dashboard is not None:
        yield "  dashboard", describe_dashboard(cost).removeprefix(": ")
    yield "  total a month", bounds(bill.total)
    for item in bill.by_use:
        yield f"  {item.name}", f"by use: {_usd(item.usd_each)} per {item.unit}"
    for unknown in cost.unknown:
        yield "  unknown", f"no published price of {unknown} in {cost.region}"


def _sources(bill: Bill) -> Iterator[tuple[str, str]]:
    for source in bill.sources:
        yield f"  {source.as_of}", source.description


def _item(item: Item) -> str:
    quantity = f"{item.quantity:,.3g}" if item.unit == "GB" else f"{item.quantity}"
    return f"{_usd(item.usd_per_month)} a month ({quantity} {item.unit} at {_usd(item.usd_each)})"


def _usd(usd: float | None) -> str:
    if usd is None:
        return "unknown"
    # Without the exponent that small numbers would have.
    return f"{f'{usd:.12f}'.rstrip('0').rstrip('.')} USD"
