"""Formats an estimated cost for people."""

from slipway.planning.bill import Part
from slipway.planning.cost import VOLUME, CostEstimate, UsdPerMonth


def describe(cost: CostEstimate) -> str:
    """Returns the row of `slipway plan`: whole dollars, with the unknown parts."""
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
    """Returns the bounds and what is expected in whole dollars, with the unit once."""
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
    """Returns what a part of the bill costs a month, with its quantity."""
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
    if cost.volumes is None:
        return "without requests, traffic and storage"
    if VOLUME in cost.unknown:
        return (
            f"without requests and traffic, and without volumes: no published price of "
            f"{VOLUME} in {cost.region}"
        )
    return "without requests and traffic"
