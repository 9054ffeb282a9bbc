"""Formats ranked instance types for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import indent
from typing import Final

from slipway.cli.output import as_lines
from slipway.sizing.ranking import Goal, LeftOut, Range, Ranked, Ranking

_DETAILED: Final = 5


def describe(found: Ranking, notes: Sequence[str] = ()) -> str:
    """Returns the goal, notes, the cheapest types in detail, others, and why types are left out."""
    goal, traffic = found.goal, found.goal.traffic
    at = "" if traffic.peak == traffic.mean else f" ({traffic.peak:.3g} a second)"
    lines = [
        f"For {traffic.source}{at}, prompts of {goal.input_tokens} tokens and answers of "
        f"{goal.output_tokens}, 99 of 100 within {1000 * goal.p99_seconds:g} ms.",
        "Predicted from measurements of other models, with the band in brackets.",
        *notes,
    ]
    for place, each in enumerate(found.ranked[:_DETAILED], start=1):
        rows = as_lines(list(_rows(each, goal)))
        lines += ["", f"{place}. {each.instance_type}, {each.basis}", indent(rows, "   ")]
    if others := found.ranked[_DETAILED:]:
        lines += ["", "Behind them:", as_lines([_in_short(each) for each in others])]
    if found.left_out:
        lines += ["", "Left out:", *_reasons(found.left_out)]
    return "\n".join(lines)


def _in_short(each: Ranked) -> tuple[str, str]:
    cost = "no published price"
    if each.usd_per_hour is not None:
        cost = f"{_range(each.usd_per_month, '{:,.0f}')} USD a month"
    count, p99 = _range(each.instances, "{:.0f}"), _range(each.p99_seconds, "{:.0f}", 1000)
    return each.instance_type, f"instances {count}, p99 {p99} ms, {cost}, {each.basis}"


def _rows(each: Ranked, goal: Goal) -> Iterator[tuple[str, str]]:
    gpus = f"{each.degree} GPUs" if each.degree > 1 else "1 GPU"
    copies = f"{each.copies} copies" if each.copies > 1 else "1 copy"
    yield "instances", f"{_range(each.instances, '{:.0f}')}, {copies} on each over {gpus}"
    memory = each.memory
    yield (
        "GPU memory",
        f"weights {memory['weights_gib']:.1f}, cache {memory['cache_gib']:.1f} for "
        f"{each.largest_batch} requests, rest {memory['rest_gib']:.1f} of "
        f"{memory['available_gib']:.1f} GiB",
    )
    yield "first token", f"{_range(each.first_token_seconds, '{:.0f}', 1000)} ms"
    yield "each token", f"{_range(each.token_seconds, '{:.1f}', 1000)} ms"
    yield "p99", f"{_range(each.p99_seconds, '{:.0f}', 1000)} ms, waiting included"
    levels = ", ".join(
        f"{level.tokens_per_second.expected:.0f} at {level.concurrency}" for level in each.levels
    )
    yield "tokens/s of a copy", f"{levels} clients"
    if each.usd_per_hour is None:
        yield "cost", f"unknown: no published price in {goal.region}"
        return
    yield (
        "cost",
        f"{_range(each.usd_per_month, '{:,.0f}')} USD a month; a million requests "
        f"{_range(each.usd_per_million_requests, '{:,.2f}')}, a million tokens "
        f"{_range(each.usd_per_million_tokens, '{:,.2f}')} (price of {each.price_as_of})",
    )


def _range(value: Range, form: str, scale: float = 1.0) -> str:
    low, expected, high = (
        "none" if each is None else form.format(each * scale)
        for each in (value.low, value.expected, value.high)
    )
    if expected == low == high:
        return expected
    return f"{expected} [{low} to {high}]"


def _reasons(left_out: Sequence[LeftOut]) -> Iterator[str]:
    """Yields each reason once, with its types."""
    types: dict[str, list[str]] = {}
    for each in left_out:
        types.setdefault(each.reason, []).append(each.instance_type)
    for reason, names in types.items():
        yield f"- {', '.join(names)}: {reason}"
