"""How well constants predict rows that they were not fitted to."""

import math
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from statistics import median
from typing import Any

from benchmarks.sizing.fit import fit, predicted_seconds
from benchmarks.sizing.rows import Row
from slipway.facts.prices import instance_price_per_hour
from slipway.sizing.facts import EXTRAPOLATED, NEARBY, is_measured_nearby, width_of
from slipway.sizing.measured import Correction

# Bands hold this part of the rows that a fit without their pair predicted.
_INSIDE = 0.95
_PRICED_IN = "us-east-1"
SEED = 47
PART = 3  # one pair in so many is held out

Pair = tuple[str, str]  # a model and an instance type


def held_out(gpus: Mapping[Pair, str]) -> frozenset[Pair]:
    """Returns the pairs that no constant is fitted to, a third of all; each has its GPU in `gpus`.

    A pair stays if it is the last one with its GPU, because nothing would be known of that GPU.
    """
    pairs = sorted(gpus)
    random.Random(SEED).shuffle(pairs)  # noqa: S311  # no secret
    held: set[Pair] = set()
    for pair in pairs:
        rest = [gpus[each] for each in gpus if each not in held and each != pair]
        if len(held) < len(pairs) // PART and gpus[pair] in rest:
            held.add(pair)
    return frozenset(held)


@dataclass(frozen=True)
class Prediction:
    """A measured row, and the predicted time of its requests in seconds."""

    row: Row
    seconds: float

    @property
    def error(self) -> float:
        return self.seconds / self.row.seconds - 1

    @property
    def distance(self) -> float:
        """Returns the size of the error as a logarithm, alike in both directions."""
        return abs(math.log(self.seconds / self.row.seconds))


def split(rows: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    held = held_out({row.pair: row.server.gpu.product for row in rows})
    return [r for r in rows if r.pair not in held], [r for r in rows if r.pair in held]


def predict_held_out(rows: Sequence[Row]) -> list[Prediction]:
    """Returns the held-out rows as the other rows predict them."""
    fitted, held = split(rows)
    constants = fit(fitted)
    return [Prediction(row, predicted_seconds(row, constants)) for row in held]


def predict_each(rows: Sequence[Row], group: Callable[[Row], Any]) -> list[Prediction]:
    """Returns every row, as the rows of all other groups predict it."""
    found = []
    for each in sorted({group(row) for row in rows}):
        constants = fit([row for row in rows if group(row) != each])
        own = [row for row in rows if group(row) == each]
        found += [Prediction(row, predicted_seconds(row, constants)) for row in own]
    return found


def corrected(predictions: Sequence[Prediction]) -> dict[str, list[tuple[Prediction, Prediction]]]:
    """Returns each row before and after the rows of a pair of its model corrected it.

    Those rows stand for a bench of one's own. It was on the same `type` without the row's
    concurrency, on another type with the same `gpu`, or on a type with an `other GPU`.
    """
    found: dict[str, list[tuple[Prediction, Prediction]]] = {}
    for pair, other in product(pairs_of(each.row for each in predictions), predictions):
        row = other.row
        if pair[0] != row.model:
            continue
        bench = [
            each
            for each in predictions
            if each.row.pair == pair
            and (pair != row.pair or each.row.load.concurrency != row.load.concurrency)
        ]
        factors = [(each.row.load.concurrency, each.row.seconds / each.seconds) for each in bench]
        correction = Correction.of(pair[1], bench[0].row.server, factors)
        after = other.seconds * correction.at(row.load.concurrency)
        place = "gpu" if correction.covers(row.server) else "other GPU"
        place = "type" if pair == row.pair else place
        found.setdefault(place, []).append((other, Prediction(row, after)))
    return found


def corrected_bands(predictions: Sequence[Prediction]) -> dict[str, dict[str, float]]:
    """Returns the widths of bands after a correction, where it helps."""
    found = corrected(predictions)
    widths: dict[str, dict[str, float]] = {"type": {}, "gpu": {}}
    for group, is_dense in (("dense", True), ("other", False)):
        for place in widths:
            own = [after.distance for _, after in found[place] if after.row.is_dense == is_dense]
            widths[place][group] = _width(own)
        # Few rows are of another type, and it is no better known than the measured one.
        widths["gpu"][group] = max(each[group] for each in widths.values())
    return widths


def pairs_of(rows: Iterable[Row]) -> list[Pair]:
    return sorted({row.pair for row in rows})


def bands(predictions: Sequence[Prediction], rows: Sequence[Row]) -> dict[str, Any]:
    """Returns the widths of bands as logarithms, from rows that a fit without their pair predicted.

    Dense networks have one width, as their errors are alike near measurements and away from them,
    and a wider one on GPUs with worse errors. The other networks have two widths. Near to a row are
    rows of other pairs.
    """
    known = {pair: measured([row for row in rows if row.pair != pair]) for pair in pairs_of(rows)}
    groups: dict[str, list[float]] = {}
    gpus: dict[str, list[float]] = {}
    for each in predictions:
        row = each.row
        if row.is_dense:
            on = f"{row.server.engine} on {row.server.gpu.product}"
            gpus.setdefault(on, []).append(each.distance)
            groups.setdefault("dense", []).append(each.distance)
            continue
        near = is_measured_nearby(known[row.pair], row.network, row.server, row.load.concurrency)
        basis = NEARBY if near else EXTRAPOLATED
        groups.setdefault(f"other, {basis}", []).append(each.distance)
    dense = _width(groups["dense"])
    wide = {name: _width(values) for name, values in gpus.items()}
    return {
        "dense": dense,
        "other": {
            basis: _width(groups[f"other, {basis}"])
            for basis in (NEARBY, EXTRAPOLATED)
            if f"other, {basis}" in groups
        },
        "wider": {name: width for name, width in sorted(wide.items()) if width > dense},
    }


def is_inside(prediction: Prediction, widths: Mapping[str, Any], near: bool) -> bool:
    row = prediction.row
    basis = NEARBY if near else EXTRAPOLATED
    return prediction.distance <= width_of(widths, row.network, row.server, basis)


def _width(distances: Sequence[float]) -> float:
    return round(sorted(distances)[math.ceil(_INSIDE * len(distances)) - 1], 3)


def summary(predictions: Sequence[Prediction]) -> dict[str, float | int]:
    """Returns the median and the worst error in percent, without their signs."""
    errors = [abs(each.error) * 100 for each in predictions]
    return {
        "rows": len(errors),
        "median_percent": round(median(errors), 1),
        "worst_percent": round(max(errors), 1),
    }


def cheaper_of_two(predictions: Sequence[Prediction]) -> tuple[int, int]:
    """Returns how many pairs of types were put in the right order by cost, and how many there are.

    Both rows are of one model, engine and concurrency, with prompts of about one length. Where
    several rows measured the same, their medians are compared.
    """
    cells: dict[tuple[Any, ...], dict[str, list[Prediction]]] = {}
    for each in predictions:
        row = each.row
        key = (row.model, row.server.engine, row.load.concurrency, round(row.load.input_tokens, -3))
        cells.setdefault(key, {}).setdefault(row.instance_type, []).append(each)
    right = total = 0
    for cell in cells.values():
        costs = {name: cost for name, own in cell.items() if (cost := _costs(name, own))}
        for one, other in combinations(costs.values(), 2):
            total += 1
            right += (one[0] < other[0]) == (one[1] < other[1])
    return right, total


def _costs(instance_type: str, predictions: Sequence[Prediction]) -> tuple[float, float] | None:
    """Returns what a token costs as measured and as predicted; None without a price."""
    price = instance_price_per_hour(instance_type, _PRICED_IN)
    if price is None:
        return None
    tokens = predictions[0].row.load.output_tokens
    measured = median(each.row.seconds for each in predictions)
    return price.usd * measured / tokens, price.usd * median(
        p.seconds for p in predictions
    ) / tokens


def measured(rows: Sequence[Row]) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = []
    for pair in pairs_of(rows):
        own = [row for row in rows if row.pair == pair]
        network, server = own[0].network, own[0].server
        found.append(
            {
                "engine": server.engine,
                "gpu": server.gpu.product,
                "degree": server.degree,
                "kind": list(network.kind),
                "parameters": network.parameters,
                "concurrency": max(row.load.concurrency for row in own),
            }
        )
    return found
