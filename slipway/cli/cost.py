"""`slipway cost`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from slipway.cli import output
from slipway.config.names import CI, LOCAL
from slipway.errors import Problem, UserError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slipway.config.environments import Environment
    from slipway.planning.bill import Bill, Item, Part
    from slipway.planning.cost import CostEstimate, UsdPerMonth
    from slipway.project import Project
    from slipway.sizing.performance import Known


def cost(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Names of models. Default: all.", autocompletion=output.model_names),
    ] = None,
    env: output.AnyEnvironmentOption = None,
    as_json: output.JsonOption = False,
) -> None:
    """Show what models cost an hour and a month, by item, with the source of each price."""
    from slipway.planning.bill import bill_of
    from slipway.sizing.performance import performance_of

    project = output.current_project()
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
        output.print_json({"bills": found})
        return
    texts = [describe(bill, known) for bill, known in bills]
    typer.echo("\n\n".join(texts) or "No environment but `local` and `ci` deploys one.")


def _environments(
    project: Project, name: str, env: str | None, *, is_named: bool
) -> list[Environment]:
    """Returns the environments whose bill is asked for: those that deploy the model."""
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
    sources = [(f"  {source.as_of}", source.description) for source in bill.sources]
    rows = output.as_lines([*_rows(bill), *_use(per_million(bill, known)), *sources])
    return f"{bill.model} in {bill.environment}, {bill.cost.region}\n{rows}"


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


def _item(item: Item) -> str:
    quantity = f"{item.quantity:,.3g}" if item.unit == "GB" else f"{item.quantity}"
    return f"{_usd(item.usd_per_month)} a month ({quantity} {item.unit} at {_usd(item.usd_each)})"


def _usd(usd: float | None) -> str:
    if usd is None:
        return "unknown"
    # Without the exponent that small numbers would have.
    return f"{f'{usd:.12f}'.rstrip('0').rstrip('.')} USD"


def describe_cost(cost: CostEstimate) -> str:
    """Returns the row of `slipway plan`: whole dollars, with the unknown parts."""
    from slipway.planning.cost import VOLUME, UsdPerMonth

    types = [name for name in cost.unknown if name != VOLUME]
    missing = f"no published price of {' and '.join(types)} in {cost.region}"
    if cost.instances == UsdPerMonth(None, None, None):
        return f"unknown: {missing}"
    text = figures(cost.instances, " USD a month")
    if types:
        text += f"; the rest is unknown: {missing}"
    if cost.volumes is not None and VOLUME not in cost.unknown:
        text += f", and for volumes {figures(cost.volumes, '')}"
    prices = ", ".join(note for note in (_hourly(cost), _dates(cost)) if note)
    return f"{text} ({'; '.join(note for note in (prices, _left_out(cost)) if note)})"


def describe_dashboard(cost: CostEstimate) -> str:
    """Returns what the dashboard costs, after its name; empty without a price."""
    price = cost.dashboard
    if price is None:
        return ""
    return (
        f": {price.usd_per_month:g} USD a month, beyond the first {price.free_dashboards} of the "
        f"account (price of {price.as_of})"
    )


def figures(cost: UsdPerMonth, unit: str) -> str:
    least, expected, most = cost.minimum, cost.expected, cost.maximum
    if least is None or expected is None or most is None:
        known = [
            f"{_whole(value)} {word}"
            for value, word in ((least, "at least"), (expected, "expected"), (most, "at most"))
            if value is not None
        ]
        # The unit once, after the first number.
        number, _, words = ", ".join(known).partition(" ")
        return f"{number}{unit} {words}"
    if least == most:
        return f"{_whole(least)}{unit}"
    return f"{_whole(least)} to {_whole(most)}{unit}, {_whole(expected)} expected"


def bounds(cost: UsdPerMonth) -> str:
    """Returns the bounds and what is expected, to the cent; `unknown` for what is not known."""
    words = (("at least", cost.minimum), ("expected", cost.expected), ("at most", cost.maximum))
    if len({usd for _, usd in words}) == 1:
        return _cents(cost.expected)
    return ", ".join(f"{word} {_cents(usd)}" for word, usd in words)


def part_text(part: Part) -> str:
    if part.quantity is None:
        return bounds(part.usd)
    quantity = f"{part.quantity:,.3g}" if part.unit == "GB" else f"{part.quantity:g}"
    return f"{bounds(part.usd)} ({quantity} {part.unit})"


def _cents(usd: float | None) -> str:
    return "unknown" if usd is None else f"{usd:,.2f} USD"


def _whole(usd: float) -> str:
    # Below a dollar the cents are all there is.
    return f"{usd:.2f}" if 0 < usd < 1 else f"{usd:,.0f}"


def _hourly(cost: CostEstimate) -> str:
    known = [(price.instance_type, price.usd) for price in cost.hourly if price.usd is not None]
    if not known:
        return ""
    if len({usd for _, usd in known}) == 1 and len(known) == len(cost.hourly):
        return f"{known[0][1]:g} USD/h each"
    return " and ".join(f"{name} {usd:g}" for name, usd in known) + " USD/h each"


def _dates(cost: CostEstimate) -> str:
    days = sorted({source.as_of for source in cost.sources})
    if not days:
        return ""
    return f"prices of {days[0]}" if len(days) == 1 else f"prices of {days[0]} to {days[-1]}"


def _left_out(cost: CostEstimate) -> str:
    from slipway.planning.cost import VOLUME

    if cost.volumes is None:
        return "without requests, traffic and storage"
    without = "without requests and traffic"
    if VOLUME not in cost.unknown:
        return without
    return f"{without}, and without volumes: no published price of {VOLUME} in {cost.region}"
